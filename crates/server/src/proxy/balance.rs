//! Which member of a balancer has the turn.
//!
//! Source: httpd 2.4.71 `modules/proxy/proxy_util.c`, `ap_proxy_balancer_get_best_worker`;
//! `balancers/mod_lbmethod_byrequests.c`, `bytraffic`, `bybusyness`; `mod_proxy_balancer.c`,
//! `find_session_route`.

use std::cell::RefCell;
use std::rc::Rc;

use milepost_engine::{Balancer, BalancerMethod};

use super::pool::Pool;

/// The state of one balancer in one worker.
#[derive(Debug)]
pub(crate) struct Balance {
    members: RefCell<Vec<Turn>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// How much it is its turn.
    status: i64,
    /// Bytes that went through it.
    traffic: u64,
}

impl Balance {
    pub(crate) fn new(balancer: &Balancer) -> Balance {
        Balance { members: RefCell::new(vec![Turn::default(); balancer.members.len()]) }
    }

    /// Chooses a member among those that are not in `tried`: that of the session, or whose turn it is.
    pub(crate) fn choose(
        &self,
        balancer: &Balancer,
        pools: &[Rc<Pool>],
        route: Option<&[u8]>,
        tried: &[usize],
    ) -> Option<usize> {
        let usable = |number: usize, forced: bool| {
            let member = &balancer.members[number];
            let pool = &pools[member.backend];
            !member.status.disabled
                && !tried.contains(&number)
                && (forced || member.status.ignores_errors || pool.left_alone().is_none())
        };
        if let Some(route) = route {
            let with = |route: &[u8]| {
                let is = |own: &Option<String>| {
                    own.as_deref().is_some_and(|own| own.as_bytes() == route)
                };
                (0..balancer.members.len()).find(|number| is(&balancer.members[*number].route))
            };
            if let Some(number) = with(route) {
                if usable(number, false) {
                    return Some(number);
                }
                let successor = balancer.members[number].redirect.as_deref();
                let successor = successor.and_then(|route| with(route.as_bytes()));
                if let Some(successor) = successor.filter(|number| usable(*number, false)) {
                    return Some(successor);
                }
                if balancer.no_failover {
                    return None;
                }
            }
        }
        // In order: the ordinary ones by set, the spares, the standbys; at last those that have failed.
        let forced = [false, true].into_iter().filter(|forced| !forced || balancer.force_recovery);
        for forced in forced {
            let mut sets: Vec<u32> = balancer.members.iter().map(|member| member.set).collect();
            sets.sort_unstable();
            sets.dedup();
            for (spare, standby) in [(false, false), (true, false), (false, true)] {
                for &set in &sets {
                    let candidates: Vec<usize> = (0..balancer.members.len())
                        .filter(|number| {
                            let member = &balancer.members[*number];
                            let status = member.status;
                            member.set == set
                                && (status.spare, status.standby) == (spare, standby)
                                && !status.draining
                                && usable(*number, forced)
                        })
                        .collect();
                    if let Some(number) = self.turn(balancer, pools, &candidates) {
                        return Some(number);
                    }
                }
            }
        }
        None
    }

    fn turn(&self, balancer: &Balancer, pools: &[Rc<Pool>], candidates: &[usize]) -> Option<usize> {
        let mut turns = self.members.borrow_mut();
        let factor = |number: usize| i64::from(balancer.members[number].load_factor);
        let total: i64 = candidates.iter().map(|number| factor(*number)).sum();
        for &number in candidates {
            turns[number].status += factor(number);
        }
        // The first of equals, as in Apache.
        let first_max = |key: &dyn Fn(usize) -> i64| {
            candidates
                .iter()
                .copied()
                .reduce(|best, next| if key(next) > key(best) { next } else { best })
        };
        let by_turn = |number: usize| turns[number].status;
        let chosen = match balancer.method {
            BalancerMethod::Requests => first_max(&by_turn),
            BalancerMethod::Traffic => first_max(&|number| {
                -i64::try_from(turns[number].traffic).unwrap_or(i64::MAX) / factor(number).max(1)
            }),
            BalancerMethod::Busyness => {
                let busy = |number: usize| pools[balancer.members[number].backend].used();
                let least = candidates.iter().map(|number| busy(*number)).min()?;
                let idlest: Vec<usize> =
                    candidates.iter().copied().filter(|number| busy(*number) == least).collect();
                idlest
                    .into_iter()
                    .reduce(|best, next| if by_turn(next) > by_turn(best) { next } else { best })
            }
        }?;
        turns[chosen].status -= total;
        Some(chosen)
    }

    /// Takes note of bytes that went through a member.
    pub(crate) fn add_traffic(&self, member: usize, bytes: u64) {
        if let Some(turn) = self.members.borrow_mut().get_mut(member) {
            turn.traffic = turn.traffic.saturating_add(bytes);
        }
    }
}

/// The route of a session: in the path parameter or the query, else in the cookie.
pub(crate) fn route<'a>(
    balancer: &Balancer,
    url: &'a [u8],
    cookies: impl Iterator<Item = &'a [u8]>,
) -> Option<&'a [u8]> {
    let (cookie, path) = balancer.sticky.as_ref()?;
    let value = in_url(url, path.as_bytes()).or_else(|| in_cookies(cookies, cookie.as_bytes()))?;
    let separator = balancer.separator.unwrap_or(b'.');
    let at = memchr::memchr(separator, value)?;
    Some(&value[at + 1..]).filter(|route| !route.is_empty())
}

fn in_url<'a>(url: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    memchr::memmem::find_iter(url, name).find_map(|at| {
        let before = at.checked_sub(1).map(|before| url[before])?;
        let value = url[at + name.len()..].strip_prefix(b"=")?;
        let is_parameter = matches!(before, b';' | b'?' | b'&');
        let end = value.iter().position(|byte| b";&?/#".contains(byte)).unwrap_or(value.len());
        is_parameter.then_some(&value[..end])
    })
}

fn in_cookies<'a>(cookies: impl Iterator<Item = &'a [u8]>, name: &[u8]) -> Option<&'a [u8]> {
    cookies
        .flat_map(|line| line.split(|byte| matches!(byte, b';' | b',')))
        .filter_map(|pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
        .map(|value| value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value))
        .next()
}

#[cfg(test)]
mod tests {
    use milepost_engine::{Member, MemberStatus};

    use super::*;

    fn balancer(members: &[(u32, MemberStatus, &str)]) -> (Balancer, Vec<Rc<Pool>>) {
        let member =
            |(backend, (load_factor, status, route)): (usize, &(u32, MemberStatus, &str))| Member {
                backend,
                route: Some((*route).to_owned()),
                redirect: None,
                load_factor: *load_factor * 100,
                set: 0,
                status: *status,
            };
        let balancer = Balancer {
            url: "balancer://x".to_owned(),
            members: members.iter().enumerate().map(member).collect(),
            method: BalancerMethod::Requests,
            sticky: Some(("S".to_owned(), "s".to_owned())),
            separator: None,
            no_failover: false,
            attempts_max: None,
            timeout: None,
            fail_on: Vec::new(),
            force_recovery: true,
        };
        let pool = |_| {
            Pool::new(&milepost_engine::Backend {
                url: String::new(),
                connections_max: None,
                acquire: None,
                ttl: None,
                timeout: None,
                connect_timeout: None,
                retry: std::time::Duration::from_secs(60),
                reuse: true,
                ping: None,
                keep_alive: false,
                upgrade: milepost_engine::Upgrade::None,
                place: String::new(),
            })
        };
        let pools = (0..members.len()).map(pool).collect();
        (balancer, pools)
    }

    fn paused(body: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { body() });
    }

    #[test]
    fn turns_go_by_weight() {
        paused(|| {
            let plain = MemberStatus::default();
            let (balancer, pools) = balancer(&[(1, plain, "a"), (3, plain, "b")]);
            let balance = Balance::new(&balancer);
            let chosen: Vec<_> =
                (0..8).filter_map(|_| balance.choose(&balancer, &pools, None, &[])).collect();
            assert_eq!(chosen.iter().filter(|number| **number == 0).count(), 2, "{chosen:?}");
        });
    }

    #[test]
    fn a_standby_waits_until_nobody_else_is_there() {
        paused(|| {
            let standby = MemberStatus { standby: true, ..MemberStatus::default() };
            let (balancer, pools) =
                balancer(&[(1, standby, "a"), (1, MemberStatus::default(), "b")]);
            let balance = Balance::new(&balancer);
            assert_eq!(balance.choose(&balancer, &pools, None, &[]), Some(1));
            assert_eq!(balance.choose(&balancer, &pools, None, &[1]), Some(0));
            pools[1].fail();
            assert_eq!(balance.choose(&balancer, &pools, None, &[]), Some(0));
            pools[0].fail();
            // When all have failed, they are tried before their time.
            assert_eq!(balance.choose(&balancer, &pools, None, &[]), Some(1));
            assert_eq!(balance.choose(&balancer, &pools, None, &[0, 1]), None);
        });
    }

    #[test]
    fn a_session_stays() {
        paused(|| {
            let plain = MemberStatus::default();
            let (mut balancer, pools) = balancer(&[(1, plain, "a"), (1, plain, "b")]);
            let balance = Balance::new(&balancer);
            for _ in 0..3 {
                assert_eq!(balance.choose(&balancer, &pools, Some(b"b"), &[]), Some(1));
            }
            assert_eq!(balance.choose(&balancer, &pools, Some(b"b"), &[1]), Some(0));
            balancer.no_failover = true;
            assert_eq!(balance.choose(&balancer, &pools, Some(b"b"), &[1]), None);
        });
    }

    #[test]
    fn routes_are_found() {
        let (balancer, _) = balancer(&[]);
        for (url, cookie, expected) in [
            ("/x", "A=b; S=1.a", Some("a")),
            ("/x", "S=\"1.a\"", Some("a")),
            ("/x", "XS=1.a", None),
            ("/x;s=1.b", "S=1.a", Some("b")),
            ("/x;s=1.b?q", "", Some("b")),
            ("/x?s=1.b&c", "", Some("b")),
            ("/xs=1.b", "S=1", None),
        ] {
            let found = route(&balancer, url.as_bytes(), [cookie.as_bytes()].into_iter());
            assert_eq!(found, expected.map(str::as_bytes), "{url} {cookie}");
        }
    }
}
