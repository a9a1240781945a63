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

#[test]
fn every_command_has_a_page_and_shells_can_complete() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let finished = run(crate::support::MILEPOST, &["manual", root.to_str().expect("UTF-8")], &[]);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    for name in ["milepost", "milepost-serve", "milepost-lab-run", "milepost-ab"] {
        let page = root.join(format!("man/man1/{name}.1"));
        let text = std::fs::read_to_string(&page).expect("a page");
        assert!(text.contains(&format!(".TH {name} 1")), "{name}: {text:.200}");
    }
    assert!(!root.join("man/man1/milepost-manual.1").exists());
    let bash = root.join("bash-completion/completions/milepost");
    let ask = "source \"$0\"; COMP_WORDS=(milepost serve --wa) COMP_CWORD=2; \
               _milepost milepost --wa serve; echo \"${COMPREPLY[@]}\"";
    let finished = run("bash", &["-c", ask, bash.to_str().expect("UTF-8")], &[]);
    assert_eq!(finished.stdout, "--watch\n", "{}", finished.stderr);
}
