//! Listeners, connections, timeouts and files: asks the engine, answers the client.
