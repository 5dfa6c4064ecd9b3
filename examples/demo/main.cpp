#include "coordinator.hpp"
#include "worker.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

int main(int argc, char** argv) {
    CLI::App app{"Several processes with hundreds of coroutines each contend for one ZooKeeper lock."};
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();

    demo::run_options run;
    int duration = static_cast<int>(run.duration.count());
    int session_timeout = static_cast<int>(run.session_timeout.count());
    CLI::App* const coordinate =
        app.add_subcommand("run", "start the processes, kill one, stop one, and compare the books");
    coordinate->add_option("--connect", run.servers, "ZooKeeper's connect string");
    coordinate->add_option("--processes", run.processes, "how many processes")->check(CLI::Range(2, 64));
    coordinate->add_option("--coroutines", run.coroutines, "how many in each process")->check(CLI::Range(1, 10'000));
    coordinate->add_option("--duration", duration, "seconds, if nothing takes longer")->check(CLI::Range(10, 3'600));
    coordinate->add_option("--session-timeout", session_timeout, "of the processes, in ms")
        ->check(CLI::Range(1'000, 60'000));

    demo::worker_options worker;
    int worker_timeout = 0;
    CLI::App* const work = app.add_subcommand("worker", "one of the processes: for `run` to start")->group("");
    work->add_option("--connect", worker.servers)->required();
    work->add_option("--root", worker.root)->required();
    work->add_option("--name", worker.name)->required();
    work->add_option("--coroutines", worker.coroutines)->required();
    work->add_option("--session-timeout", worker_timeout)->required();

    CLI11_PARSE(app, argc, argv);
    try {
        if (*work) {
            worker.session_timeout = std::chrono::milliseconds(worker_timeout);
            return demo::run_worker(worker);
        }
        run.duration = std::chrono::seconds(duration);
        run.session_timeout = std::chrono::milliseconds(session_timeout);
        return demo::run_coordinator(run);
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return 1;
    }
}
