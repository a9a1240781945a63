//! `--help` of every command, as it is printed: a change of an interface shows in its review.

use std::collections::VecDeque;

use crate::support::run;

#[test]
fn every_command_explains_itself() {
    let mut commands = VecDeque::from([Vec::<String>::new()]);
    let mut count = 0;
    while let Some(command) = commands.pop_front() {
        let text = help(&command);
        let subcommands = subcommands(&text).map(|name| [&*command, &[name.to_owned()]].concat());
        commands.extend(subcommands);
        let name = [&["milepost".to_owned()], &*command].concat().join("-");
        insta::assert_snapshot!(name, text);
        count += 1;
    }
    assert!(count >= 6, "only {count} commands were found");
}

/// Returns what `milepost COMMAND --help` prints, wrapped as for a pipe.
#[track_caller]
fn help(command: &[String]) -> String {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let finished = run(crate::support::MILEPOST, &arguments, &[("COLUMNS", ""), ("LINES", "")]);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""), "{arguments:?}");
    finished.stdout
}

/// Reads the names under "Commands:", without `help` itself.
fn subcommands(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split_once("\nCommands:\n").map_or("", |(_, after)| after);
    let lines = after.lines().take_while(|line| line.starts_with("  "));
    lines.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}
