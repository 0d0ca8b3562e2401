//! A network namespace, which is a thread that lives in it.
//!
//! It has no name and no file. The kernel removes it, and every device in it,
//! when the last thread, process and socket of it is gone, however they end. So
//! nothing can be left behind, and nothing must be tidied up at the start.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::Error;
use crate::sys;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Namespace {
    name: String,
    /// Empty when the thread is to end.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    thread_id: i32,
}

impl Namespace {
    /// Makes one, with nothing but a loopback device that is down.
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (made, is_made) = mpsc::channel();
        let live = move || {
            let result = sys::unshare_network();
            let entered = result.is_ok();
            let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
            // Nobody hears it if the caller is gone.
            let _ = made.send(result.map(|()| thread_id));
            if entered {
                for job in inbox {
                    job();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(live)
            .map_err(Error::system("starting a thread"))?;
        let thread_id = is_made
            .recv()
            .unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into()))
            .map_err(|error| {
                Error::Unavailable(format!(
                    "no network namespaces: {error}; be root, or run the program under \
                     `unshare --user --map-root-user`"
                ))
            })?;
        Ok(Self {
            name: name.to_owned(),
            jobs: Some(jobs),
            thread: Some(thread),
            thread_id,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The thread that lives in it, which `ip` takes for the namespace.
    pub(crate) fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// A file that stands for it as long as it is there, for `nsenter --net=`.
    pub(crate) fn path(&self) -> PathBuf {
        let (process, thread) = (std::process::id(), self.thread_id);
        format!("/proc/{process}/task/{thread}/ns/net").into()
    }

    /// Runs something short on its thread, and waits for it.
    pub(crate) fn on_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let (answer, answered) = mpsc::channel();
        let job = move || {
            // The thread must outlive what it runs. The panic goes on below, so
            // nobody sees what was left half done.
            let result = catch_unwind(AssertUnwindSafe(work));
            let _ = answer.send(result);
        };
        if let Some(jobs) = &self.jobs {
            // The thread ends only when the sender is dropped.
            let _ = jobs.send(Box::new(job));
        }
        match answered.recv() {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => unreachable!("the namespace's thread lives as long as the namespace"),
        }
    }

    /// Runs something in it on a thread of its own.
    pub(crate) fn spawn<R: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, Error> {
        let builder = std::thread::Builder::new().name(name.to_owned());
        // A thread is born in the namespace of its parent.
        self.on_thread(move || builder.spawn(work))
            .map_err(Error::system("starting a thread"))
    }

    /// Starts a program in it, which gets SIGKILL when the namespace's thread
    /// ends.
    pub(crate) fn start(&self, mut command: Command) -> Result<Child, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        sys::end_with_this_thread(&mut command);
        self.on_thread(move || command.spawn())
            .map_err(|error| cannot_start(&program, error))
    }

    /// Feeds lines to `ip`, `tc` or `bridge`, started in it.
    pub(crate) fn batch(&self, program: &'static str, lines: &[String]) -> Result<(), Error> {
        let mut command = Command::new(program);
        command
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = self.start(command)?;
        let mut text = lines.join("\n");
        text.push('\n');
        if let Some(mut stdin) = child.stdin.take() {
            // If it ends early, its message is better than "broken pipe".
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child
            .wait_with_output()
            .map_err(Error::system(format!("waiting for `{program}`")))?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(Error::Program {
            program: program.to_owned(),
            message: explain(&message, lines),
        })
    }

    /// Sets a sysctl. Those below `net/` belong to the namespace of the thread
    /// that writes.
    pub(crate) fn set(&self, setting: &str, value: &'static str) -> Result<(), Error> {
        let path = format!("/proc/sys/{setting}");
        let doing = format!("writing {value} to {path}");
        self.on_thread(move || std::fs::write(path, value))
            .map_err(Error::system(doing))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Its jobs catch their panics.
            let _ = thread.join();
        }
    }
}

/// A program that is not there is what is missing on this machine.
pub(crate) fn cannot_start(program: &str, source: std::io::Error) -> Error {
    if source.kind() != std::io::ErrorKind::NotFound {
        return Error::System {
            doing: format!("starting `{program}`"),
            source,
        };
    }
    let package = match program {
        "ip" | "tc" | "bridge" => ": install the package iproute2",
        "unshare" => ": install the package util-linux",
        _ => "",
    };
    Error::Unavailable(format!("the program `{program}` is not there{package}"))
}

/// What was said, on one line, and about which line of the script.
fn explain(message: &str, lines: &[String]) -> String {
    let what = message
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("failed and said nothing");
    let about = message
        .lines()
        .find_map(|line| line.strip_prefix("Command failed -:"))
        .and_then(|number| number.trim().parse::<usize>().ok())
        .and_then(|number| lines.get(number.checked_sub(1)?));
    match about {
        Some(line) => format!("{} (in `{line}`)", what.trim()),
        None => what.trim().to_owned(),
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn explain__names_the_line() {
        let lines = ["link add a".to_owned(), "link set b up".to_owned()];
        assert_eq!(
            explain("Cannot find device \"b\"\nCommand failed -:2\n", &lines),
            "Cannot find device \"b\" (in `link set b up`)"
        );
        assert_eq!(explain("", &lines), "failed and said nothing");
    }

    #[test]
    fn cannot_start__says_what_to_install() {
        let error = cannot_start("tc", std::io::ErrorKind::NotFound.into());
        assert_eq!(
            error.to_string(),
            "the program `tc` is not there: install the package iproute2"
        );
    }
}
