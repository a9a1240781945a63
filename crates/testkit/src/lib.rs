//! Spec runner, real httpd and scripted TCP peers, for tests only.
