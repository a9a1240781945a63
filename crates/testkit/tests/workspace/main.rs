//! What holds for the workspace as a whole: who may depend on whom, who may touch the outside, and
//! under which licences the dependencies come.

mod architecture;
mod licences;
mod metadata;
