//! A small made-up result for tests: seven rounds, three servers, known costs.

use crate::environment::Environment;
use crate::experiment::{Metric, Question, Target};
use crate::results::{
    Alternative, Results, ServiceTimes, Ticks, Trial, UserSystem, Volume, WrongExample,
};
use crate::server::{Missing, ServerKind};

/// Time and CPU for a request on one connection, in microseconds.
struct Cost {
    server: ServerKind,
    method: &'static str,
    title: &'static str,
    time_us: f64,
    cpu_us: f64,
    wrong: bool,
}

const COSTS: [Cost; 8] = [
    cost(ServerKind::Milepost, "one", "one rule only", 17.0, 7.0, false),
    cost(ServerKind::Milepost, "redirect", "Redirect", 17.1, 7.02, false),
    cost(ServerKind::Apache, "one", "one rule only", 48.0, 20.0, false),
    cost(ServerKind::Apache, "redirect", "Redirect", 90.0, 65.0, false),
    cost(ServerKind::Apache, "rewriterule", "RewriteRule ^/test/N$", 750.0, 720.0, false),
    cost(ServerKind::Apache, "redirectmatch-unanchored", "RedirectMatch /test/N", 50.0, 22.0, true),
    cost(ServerKind::Nginx, "one", "one rule only", 16.0, 6.5, false),
    cost(ServerKind::Nginx, "map", "map of $uri", 16.2, 6.6, false),
];

const fn cost(
    server: ServerKind,
    method: &'static str,
    title: &'static str,
    time_us: f64,
    cpu_us: f64,
    wrong: bool,
) -> Cost {
    Cost { server, method, title, time_us, cpu_us, wrong }
}

/// Returns the result: targets last and miss on 1 connection, last on 10.
pub(crate) fn results() -> Results {
    let mut results = Results {
        experiment: "redirect-methods".to_owned(),
        title: "What a redirect costs".to_owned(),
        question: "How much time and CPU does a redirect take?".to_owned(),
        seed: 42,
        rules: 10_000,
        rounds: 7,
        volume: Volume::Milliseconds(75),
        warm_up_ms: 12,
        seconds: 61.5,
        environment: environment(),
        alternatives: Vec::new(),
        missing_servers: vec![Missing {
            server: ServerKind::MilepostScan,
            reason: "it was not asked for & <escaped>".to_owned(),
        }],
        trials: Vec::new(),
        wrong_answer_examples: Vec::new(),
        error_examples: Vec::new(),
        warnings: Vec::new(),
        comparisons: vec![
            question("milepost, all rules against one rule", "milepost/re*", "milepost/one", true),
            question("Apache, all rules against one rule", "apache/re*", "apache/one", false),
        ],
    };
    for cost in &COSTS {
        let name = format!("{}/{}", cost.server.name(), cost.method);
        add(&mut results, cost, &name, None);
        if name == "milepost/redirect" {
            add(&mut results, cost, "milepost/redirect/control", Some(name.clone()));
        }
    }
    results
}

fn add(results: &mut Results, cost: &Cost, name: &str, control_of: Option<String>) {
    let directory = name.replace('/', "-");
    results.alternatives.push(Alternative {
        name: name.to_owned(),
        server: cost.server,
        server_version: "1.0".to_owned(),
        method: cost.method.to_owned(),
        method_title: cost.title.to_owned(),
        rules: if cost.method == "one" { 1 } else { 10_000 },
        control_of,
        expected_wrong: if cost.wrong { vec![Target::Last] } else { vec![] },
        command: vec!["serve".to_owned(), format!("servers/{directory}/x.conf")],
        configuration: format!("servers/{directory}/x.conf"),
        rule_files: vec![format!("methods/{}/rules.conf", cost.method)],
    });
    if cost.wrong {
        results.wrong_answer_examples.push(WrongExample {
            alternative: name.to_owned(),
            target: Target::Last,
            connections: 1,
            url: "http://127.0.0.1:10000/test/10000".to_owned(),
            expected: "301 Location: http://www.example.org/new/10000".to_owned(),
            got: "301 Location: http://www.example.org/new/1".to_owned(),
        });
    }
    for (target, connections) in [(Target::Last, 1), (Target::Miss, 1), (Target::Last, 10)] {
        for round in 1..=results.rounds {
            let wrong = cost.wrong && target == Target::Last;
            results.trials.push(trial(cost, name, target, connections, round, wrong));
        }
    }
}

fn trial(
    cost: &Cost,
    name: &str,
    target: Target,
    connections: u32,
    round: u32,
    wrong: bool,
) -> Trial {
    // The rounds differ a little, and the fourth is disturbed.
    let weather = 1.0 + f64::from(round % 3) * 0.005 + if round == 4 { 0.4 } else { 0.0 };
    let time_us = cost.time_us * weather;
    let ten = if connections == 1 { 1.0 } else { 0.4 };
    let cpu_us = cost.cpu_us * (1.0 + f64::from(round % 3) * 0.002) * ten;
    let requests = (75_000.0 / (time_us * ten)) as u64;
    let ns = |factor: f64| (time_us * 1_000.0 * factor) as u64;
    Trial {
        alternative: name.to_owned(),
        target,
        connections,
        round,
        requests,
        wrong_answers: if wrong { requests } else { 0 },
        errors: 0,
        unanswered: 1,
        seconds: 0.075,
        requests_per_second: if wrong { 0.0 } else { 1e6 / (time_us * ten) },
        server_cpu_us_per_request: UserSystem { user: cpu_us * 0.3, system: cpu_us * 0.7 },
        server_cpu_ticks: Ticks { user: 2, system: 5 },
        client_cpu_us_per_request: 3.0,
        client_busiest_thread: 0.5,
        service_ns: (!wrong).then(|| ServiceTimes {
            p50: ns(0.98),
            p90: ns(1.1),
            p99: ns(1.5),
            p999: ns(3.0),
            max: ns(20.0),
            mean: ns(1.0) as f64,
        }),
    }
}

fn question(title: &str, of: &str, against: &str, same: bool) -> Question {
    Question {
        title: title.to_owned(),
        of: vec![of.to_owned()],
        against: against.to_owned(),
        target: Target::Last,
        connections: 1,
        metric: Metric::ServerCpuUsPerRequest,
        same_percent: same.then_some(5.0),
    }
}

fn environment() -> Environment {
    Environment {
        date: "2026-11-21T05:25:00Z".to_owned(),
        command: ["milepost", "lab", "run", "redirect-methods"].map(str::to_owned).to_vec(),
        milepost_version: "0.1.0".to_owned(),
        milepost_commit: None,
        optimised_build: true,
        cpu_model: "A Processor".to_owned(),
        cores: 2,
        virtual_machine: true,
        governor: None,
        kernel: "Linux 6.18.0 x86_64".to_owned(),
        system: "A System 12".to_owned(),
        load_average: 0.03,
        steal_percent: Some(0.1),
    }
}
