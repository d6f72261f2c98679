//! What a server takes: throughput and latency of redis, with the server under chase and its peers.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};

use crate::bench::{Bench, Running, TooLong, Under, installed, unwatchable};
use crate::peers::{self, Output, Peer};
use crate::programs::libc;
use crate::report::{Beyond, Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "redis";
/// Throughput, times that of the bare server.
const BAR: f64 = 0.97;
const BAR_WATCHED: f64 = 0.85;

/// Many short turns: the machine does not stay the same for long, and single ones differ by a tenth.
const LIMIT: Limit = Limit { least: 80, most: 100, time: Duration::from_secs(150) };
const PEER_LIMIT: Limit = Limit { least: 1, most: 3, time: Duration::from_secs(10) };
/// Of the one that records the same.
const PEER_ALIKE_LIMIT: Limit = Limit { least: 9, most: 41, time: Duration::from_secs(60) };
/// Requests of each kind in a run, from 50 clients that wait for each answer.
const REQUESTS: (u32, u32) = (40_000, 20_000);
const PEER_REQUESTS: (u32, u32) = (30_000, 10_000);
/// Until the server answers, and from the request to end until it has ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// For all requests.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// How redis-benchmark calls what is measured.
const TESTS: [&str; 2] = ["SET", "GET"];

/// What one kind of request came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Served {
    /// Requests per second.
    throughput: f64,
    /// Milliseconds.
    p50: f64,
    p99: f64,
}

/// Runs of the server under one thing, of each test.
type Runs = RefCell<Vec<[Served; TESTS.len()]>>;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for program in ["redis-server", "redis-benchmark"] {
        if installed(program).is_none() {
            report.skipped(PART, "SET and GET", &format!("{program} is not installed"));
            return Ok(());
        }
    }
    let directory = bench.directory(PART)?;
    against_bare(bench, report, &directory);
    if bench.peers {
        against_peers(bench, report, &directory);
    }
    Ok(())
}

fn against_bare(bench: &Bench, report: &mut Report, directory: &Path) {
    let requests = bench.count(REQUESTS.0, REQUESTS.1);
    let unwatchable = unwatchable();
    let runs: [Runs; 4] = Default::default();
    // These wait for their turns. What watches system calls takes time of all processes, so that
    // server is there in its turns only.
    let waiting: [RefCell<Option<Server<'_>>>; 3] = Default::default();
    let run = |at: usize, under| {
        let mut server = waiting[at].borrow_mut();
        if server.is_none() {
            *server = Some(Server::start(bench, directory, under)?);
        }
        let Some(server) = &*server else { bail!("no server") };
        noted(&runs[at], server.measure(bench, requests, RUN_LIMIT)?)
    };
    let [bare, adaptive, all, watched] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(0, Under::Nothing)),
            Turn::new(|| run(1, Under::Chase)),
            Turn::new(|| run(2, Under::ChaseAll)),
            Turn::new(|| match &unwatchable {
                None => {
                    let server = Server::start(bench, directory, Under::ChaseWithSyscalls)?;
                    noted(&runs[3], server.measure_and_end(bench, requests, RUN_LIMIT)?)
                }
                Some(why) => bail!("{why}"),
            }),
        ],
    );
    if let Err(why) = bare {
        return report.skipped(PART, "SET and GET", &format!("{why:#}"));
    }
    let end = |at: usize| waiting[at].take().map_or(Ok(()), Server::end);
    let _ = end(0);
    let adaptive = adaptive.and_then(|values| end(1).map(|()| values));
    let all = all.and_then(|values| end(2).map(|()| values));
    let bare = runs[0].borrow();
    for (at, how, bar, outcome) in [
        (1, "adaptive", Some(BAR), adaptive),
        (2, "all", None, all),
        (3, "adaptive, system calls too", Some(BAR_WATCHED), watched),
    ] {
        let what = format!("throughput, {how}");
        match outcome {
            Ok(_) => compared(report, &what, bar, &bare, &runs[at].borrow()),
            Err(why) if at == 3 && unwatchable.is_some() => {
                report.skipped(PART, &what, &format!("{why:#}"));
            }
            Err(why) => report.failed(PART, &what, None, &format!("{why:#}")),
        }
    }
}

fn against_peers(bench: &Bench, report: &mut Report, directory: &Path) {
    let requests = bench.count(PEER_REQUESTS.0, PEER_REQUESTS.1);
    let mut all = peers::library_calls();
    if let Ok(libc) = libc() {
        all.push(peers::uprobes("bpftrace, uprobes on read and write", &libc, &["read", "write"]));
    }
    all.extend(peers::system_calls());
    for peer in peers::usable(bench, report, PART, all) {
        let what = format!("throughput: {}", peer.name);
        let runs: [Runs; 3] = Default::default();
        let last_bare = Cell::new(Duration::ZERO);
        let [bare, with, chase] = in_turns(
            bench.limit(if peer.records_the_same() { PEER_ALIKE_LIMIT } else { PEER_LIMIT }),
            [
                Turn::new(|| {
                    let start = Instant::now();
                    let server = Server::start(bench, directory, Under::Nothing)?;
                    let served = server.measure_and_end(bench, requests, RUN_LIMIT)?;
                    last_bare.set(start.elapsed());
                    noted(&runs[0], served)
                }),
                Turn::new(|| {
                    let limit = peers::patience(last_bare.get());
                    let server = Server::under_peer(bench, directory, &peer)?;
                    noted(&runs[1], server.measure_and_end(bench, requests, limit)?)
                }),
                Turn::new(|| {
                    ensure!(peer.records_the_same(), "not to be compared with");
                    let server = Server::start(bench, directory, Under::ChaseAll)?;
                    noted(&runs[2], server.measure_and_end(bench, requests, RUN_LIMIT)?)
                }),
            ],
        );
        let runs = runs.map(RefCell::into_inner);
        match (bare, with) {
            (Ok(_), Ok(_)) => compared(report, &what, None, &runs[0], &runs[1]),
            (Err(why), _) => report.skipped(PART, &what, &format!("{why:#}")),
            (_, Err(why)) => match why.downcast_ref::<TooLong>() {
                Some(TooLong(limit)) => {
                    let share = last_bare.get().as_secs_f64() / limit.as_secs_f64();
                    let said = format!("{why:#}");
                    report.beyond(PART, &what, "×", Beyond::Below(share), &said);
                }
                None => report.without_verdict(PART, &what, &format!("{why:#}")),
            },
        }
        if peer.records_the_same() && !runs[1].is_empty() {
            let what = format!("throughput: all ÷ {}", peer.name);
            // No bar: a server that takes longer for each request finds more of them each time it asks, and may well
            // answer more of them in all.
            match chase {
                Ok(_) => compared(report, &what, None, &runs[1], &runs[2]),
                Err(why) => report.failed(PART, &what, None, &format!("{why:#}")),
            }
        }
    }
}

/// Rows: throughput as a multiple of the `base`'s, for each test.
fn compared(
    report: &mut Report,
    what: &str,
    bar: Option<f64>,
    base: &[[Served; TESTS.len()]],
    with: &[[Served; TESTS.len()]],
) {
    for (at, test) in TESTS.iter().enumerate() {
        let column = |runs: &[[Served; TESTS.len()]], of: fn(Served) -> f64| {
            runs.iter().map(|run| of(run[at])).collect::<Vec<_>>()
        };
        let rate = |served: Served| served.throughput / 1e3;
        report.measured_at_least(Figure {
            part: PART,
            what: format!("{test} {what}"),
            unit: "×",
            bar,
            values: paired(&column(with, rate), &column(base, rate), |with, base| with / base),
            details: vec![
                ("base", "k/s", column(base, rate)),
                ("here", "k/s", column(with, rate)),
                ("p50 base", "ms", column(base, |served| served.p50)),
                ("here", "ms", column(with, |served| served.p50)),
                ("p99 base", "ms", column(base, |served| served.p99)),
                ("here", "ms", column(with, |served| served.p99)),
            ],
        });
    }
}

/// Keeps all of a run; what decides how many there are is the first of it.
fn noted(runs: &Runs, served: [Served; TESTS.len()]) -> Result<f64> {
    runs.borrow_mut().push(served);
    Ok(served[0].throughput)
}

/// A server of our own, which ends with this.
struct Server<'a> {
    running: Running,
    port: u16,
    peer: Option<(&'a Peer, Output)>,
}

impl<'a> Server<'a> {
    fn start(bench: &Bench, directory: &Path, under: Under) -> Result<Self> {
        let (command, port) = Self::command()?;
        Self { running: bench.start(directory, under, &command)?, port, peer: None }.ready()
    }

    fn under_peer(bench: &Bench, directory: &Path, peer: &'a Peer) -> Result<Self> {
        let (command, port) = Self::command()?;
        let (running, output) = peer.start(bench, directory, &command)?;
        Self { running, port, peer: Some((peer, output)) }.ready()
    }

    fn command() -> Result<(Vec<String>, u16)> {
        // Whatever is free; nobody else takes it in the next moment.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let command = format!("redis-server --port {port} --bind 127.0.0.1 --appendonly no");
        Ok((command.split(' ').map(str::to_owned).collect(), port))
    }

    /// Waits until it answers.
    fn ready(self) -> Result<Self> {
        let start = Instant::now();
        loop {
            match self.ask("PING") {
                Ok(answer) if answer == "+PONG\r\n" => break,
                Ok(answer) => bail!("redis-server answers {answer:?}"),
                Err(why) if start.elapsed() > PATIENCE => {
                    let why = format!("no answer: {why:#}");
                    return Err(anyhow::Error::new(TooLong(PATIENCE)).context(why));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        // No snapshots, which would be made by another process in the midst of it.
        ensure!(self.ask("CONFIG SET save \"\"")? == "+OK\r\n", "redis-server can't be configured");
        Ok(self)
    }

    /// Sends one line and returns what comes back at once.
    fn ask(&self, line: &str) -> Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{line}\r\n").as_bytes())?;
        let mut answer = [0; 256];
        let length = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Sends `requests` of each kind, and checks what the server then has.
    fn measure(&self, bench: &Bench, requests: u32, limit: Duration) -> Result<[Served; 2]> {
        let (port, requests) = (self.port.to_string(), requests.to_string());
        let client = ["redis-benchmark", "-p", &port, "-t", "set,get", "-n", &requests];
        let client = [&client[..], &["-c", "50", "-P", "1", "--csv"]].concat();
        let run = bench.start(&bench.directory(PART)?, Under::Nothing, &client)?.finish(limit)?;
        let served = parse(&String::from_utf8_lossy(&run.stdout))?;
        // What redis-benchmark sets.
        let (keys, value) = (self.ask("DBSIZE")?, self.ask("GET key:__rand_int__")?);
        ensure!(keys == ":1\r\n" && value == "$3\r\nVXK\r\n", "wrong answers: {keys:?}, {value:?}");
        Ok(served)
    }

    fn measure_and_end(self, bench: &Bench, requests: u32, limit: Duration) -> Result<[Served; 2]> {
        let served = self.measure(bench, requests, limit)?;
        self.end()?;
        Ok(served)
    }

    /// Ends the server, and checks that its peer has seen it.
    fn end(self) -> Result<()> {
        // It closes the connection instead of an answer.
        self.ask("SHUTDOWN NOSAVE")?;
        self.running.finish(PATIENCE)?;
        if let Some((peer, output)) = &self.peer {
            peer.must_have_seen(output)?;
        }
        Ok(())
    }
}

/// What redis-benchmark prints with `--csv`: quoted fields under a header.
fn parse(csv: &str) -> Result<[Served; TESTS.len()]> {
    let mut rows = csv
        .lines()
        .map(|line| line.split(',').map(|field| field.trim_matches('"')).collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let rows: Vec<_> = rows.collect();
    let mut served = [Served::default(); TESTS.len()];
    for (served, test) in served.iter_mut().zip(TESTS) {
        let row = rows.iter().find(|row| row.first() == Some(&test));
        let field = |name| {
            let at = header.iter().position(|field| *field == name)?;
            row?.get(at)?.parse::<f64>().ok()
        };
        let all = (field("rps"), field("p50_latency_ms"), field("p99_latency_ms"));
        let (Some(throughput), Some(p50), Some(p99)) = all else {
            return Err(anyhow!("redis-benchmark gave no {test} figures, but {csv:?}"));
        };
        *served = Served { throughput, p50, p99 };
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_header() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\
            \"GET\",\"200.5\",\"1\",\"2\",\"3\"\n\"SET\",\"100\",\"4\",\"5\",\"6\"\n";
        let [set, get] = parse(csv).unwrap();
        assert_eq!(set, Served { throughput: 100.0, p50: 5.0, p99: 6.0 });
        assert_eq!(get, Served { throughput: 200.5, p50: 2.0, p99: 3.0 });
        assert!(parse("\"test\",\"rps\"\n\"SET\",\"100\"\n").is_err());
        assert!(parse("").is_err());
    }
}
