#include <zkasio/testing/ensemble.hpp>

#include <zkasio/testing/detail/server_processes.hpp>
#include <zkasio/testing/detail/worker.hpp>

#include <utility>

namespace zkasio::testing {

using testing_detail::server_processes;
using testing_detail::worker;
using action = testing_detail::server_action;

struct ensemble::impl {
    impl(int count, server_options o) : servers(count, std::move(o)) {
        actions.run([this](const server_processes::flag& cancelled) { servers.start_all(cancelled); });
    }

    void act(action what, int server, const server_processes::flag& cancelled) {
        switch (what) {
            case action::stop: return servers.stop(server, cancelled);
            case action::kill: return servers.kill(server);
            case action::start: return servers.start(server, cancelled);
            case action::restart: servers.kill(server); return servers.start(server, cancelled);
            case action::pause: return servers.pause(server, cancelled);
            case action::resume: return servers.resume(server);
        }
    }
    void act(action what, int server) {
        actions.run([&](const server_processes::flag& cancelled) { act(what, server, cancelled); });
    }

    // The workers are destroyed before the servers: all waiting callers are resumed first. The processes end with the
    // thread that they are children of, or right after that in ~server_processes().
    server_processes servers;
    worker actions, questions;
};

std::string ensemble::impossible(const server_options& options) { return testing_detail::why_no_servers(options); }

ensemble::ensemble(int count, server_options options) : impl_(std::make_unique<impl>(count, std::move(options))) {}
ensemble::~ensemble() = default;

const std::string& ensemble::connect_string() const noexcept { return impl_->servers.connect_string(); }
int ensemble::size() const noexcept { return impl_->servers.size(); }
std::string ensemble::address(int server) const {
    static_cast<void>(port(server));  // throws if there is no such server
    return server_processes::address(server);
}
std::uint16_t ensemble::port(int server) const { return impl_->servers.port(server); }

std::string ensemble::secure_endpoint(int server) const {
    return address(server) + ":" + std::to_string(impl_->servers.secure_port(server));
}

void ensemble::stop(int server) { impl_->act(action::stop, server); }
void ensemble::kill(int server) { impl_->act(action::kill, server); }
void ensemble::start(int server) { impl_->act(action::start, server); }
void ensemble::restart(int server) { impl_->act(action::restart, server); }
void ensemble::pause(int server) { impl_->act(action::pause, server); }
void ensemble::resume(int server) { impl_->act(action::resume, server); }

void ensemble::begin(action what, int server, testing_detail::job_ptr job) {
    job->work = [self = impl_.get(), what, server](const server_processes::flag& cancelled) {
        self->act(what, server, cancelled);
    };
    impl_->actions.begin(std::move(job));
}

// ------------------------------------------------------------------------------------------------- partitions

void ensemble::partition(const std::vector<int>& some, const std::vector<int>& others) {
    impl_->actions.run([&](const server_processes::flag&) {
        for (const int a : some)
            for (const int b : others) impl_->servers.connect(a, b, false);
    });
}

void ensemble::isolate(int server) {
    impl_->actions.run([&](const server_processes::flag&) {
        for (int other = 0; other < size(); ++other) impl_->servers.connect(server, other, false);
    });
}

void ensemble::heal() {
    impl_->actions.run([&](const server_processes::flag&) {
        for (int a = 0; a < size(); ++a)
            for (int b = 0; b < a; ++b) impl_->servers.connect(a, b, true);
    });
}

// -------------------------------------------------------------------------------------------------- questions

std::string ensemble::ask(const std::string& four_letters, int server) const {
    return impl_->servers.ask(four_letters, server);
}

std::string ensemble::mode(int server) const { return impl_->servers.mode(server); }
int ensemble::leader() const { return impl_->servers.leader(); }

int ensemble::wait_for_leader(int other_than) const {
    return impl_->servers.wait_for_leader(other_than, server_processes::flag(false));
}

void ensemble::begin_ask(std::string four_letters, int server, std::shared_ptr<std::string> answer,
                         testing_detail::job_ptr job) const {
    job->work = [self = impl_.get(), four_letters = std::move(four_letters), server,
                 answer = std::move(answer)](const server_processes::flag&) {
        *answer = self->servers.ask(four_letters, server);
    };
    impl_->questions.begin(std::move(job));
}

void ensemble::begin_wait_for_leader(int other_than, std::shared_ptr<int> found, testing_detail::job_ptr job) const {
    job->work = [self = impl_.get(), other_than, found = std::move(found)](const server_processes::flag& cancelled) {
        *found = self->servers.wait_for_leader(other_than, cancelled);
    };
    impl_->questions.begin(std::move(job));
}

std::string ensemble::log(int server) const { return impl_->servers.log(server); }

}  // namespace zkasio::testing
