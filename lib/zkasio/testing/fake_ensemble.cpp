#include <zkasio/testing/fake_ensemble.hpp>

#include <zkasio/path.hpp>
#include <zkasio/testing/detail/driver.hpp>

namespace zkasio::testing {

using namespace testing_detail;

namespace {

void check_path(const std::string& path, std::string_view operation) {
    require_path(operation, path);
}

void check_percentage(int percent, std::string_view operation) {
    if (percent < 0 || percent > 100)
        throw error(errc::invalid_argument, operation, {}, std::to_string(percent) + " is no percentage");
}

}  // namespace

struct fake_ensemble::impl {
    explicit impl(std::uint64_t seed) : runs(seed) {}
    sim_ensemble& servers() { return runs.servers(); }

    void operate(const detail::multi_op& op, std::string_view operation, const std::string& path) {
        if (const std::error_code failed = servers().operate(op))
            throw error(failed, "fake_ensemble::" + std::string(operation), path);
    }

    driver runs;
};

fake_ensemble::fake_ensemble(std::uint64_t seed) : impl_(std::make_unique<impl>(seed)) {}
fake_ensemble::~fake_ensemble() = default;

// ---------------------------------------------------------------------------------------------------- clients

asio::io_context& fake_ensemble::context() noexcept { return impl_->runs.context(); }
asio::any_io_executor fake_ensemble::get_executor() { return context().get_executor(); }

client fake_ensemble::client(client_options options) {
    return impl_->runs.add_client(get_executor(), std::move(options));
}

client fake_ensemble::client(asio::any_io_executor executor, client_options options) {
    return impl_->runs.add_client(std::move(executor), std::move(options));
}

// ---------------------------------------------------------------------------------------------------- running

void fake_ensemble::run_task(asio::awaitable<void> task, duration limit) { impl_->runs.run(std::move(task), limit); }
void fake_ensemble::run_for(any_duration time) { impl_->runs.run_for(time); }
void fake_ensemble::run_dry(any_duration limit) { impl_->runs.run_dry(limit); }
fake_ensemble::duration fake_ensemble::now() const noexcept { return impl_->runs.now(); }

// ----------------------------------------------------------------------------------------------------- faults

void fake_ensemble::cut(const zkasio::client& zk) {
    impl_->servers().drop_connection(impl_->runs.number_of(zk, "fake_ensemble::cut"));
}

void fake_ensemble::hold_down(const zkasio::client& zk) {
    impl_->servers().cut_off(impl_->runs.number_of(zk, "fake_ensemble::hold_down"));
}

void fake_ensemble::lose_quorum(const zkasio::client& zk) {
    impl_->servers().lose_quorum(impl_->runs.number_of(zk, "fake_ensemble::lose_quorum"));
}

void fake_ensemble::silence(const zkasio::client& zk) {
    impl_->runs.silence(impl_->runs.number_of(zk, "fake_ensemble::silence"));
}

void fake_ensemble::let_in(const zkasio::client& zk) {
    impl_->runs.let_in(impl_->runs.number_of(zk, "fake_ensemble::let_in"));
}

void fake_ensemble::hang_up(const zkasio::client& zk) {
    impl_->servers().hang_up(impl_->runs.number_of(zk, "fake_ensemble::hang_up"));
}

void fake_ensemble::expire(const zkasio::client& zk) {
    const int client = impl_->runs.number_of(zk, "fake_ensemble::expire");
    if (!impl_->servers().expire(client))
        throw error(errc::session_expired, "fake_ensemble::expire", {}, "the client has no session that lives");
}

void fake_ensemble::lose_answer(const zkasio::client& zk, std::string request) {
    impl_->runs.lose_answer(impl_->runs.number_of(zk, "fake_ensemble::lose_answer"), std::move(request));
}

void fake_ensemble::stall(any_duration time) { impl_->runs.stall(time); }

void fake_ensemble::refuse(std::string path, std::error_code why) {
    check_path(path, "fake_ensemble::refuse");
    impl_->servers().refuse(path, why);
}

void fake_ensemble::accept(const std::string& path) { impl_->servers().accept(path); }

void fake_ensemble::throttle(int percent) {
    check_percentage(percent, "fake_ensemble::throttle");
    impl_->servers().throttled = percent;
}

void fake_ensemble::lose_connections(int percent) {
    check_percentage(percent, "fake_ensemble::lose_connections");
    impl_->runs.loss = percent;
}

void fake_ensemble::lag(bool on) { impl_->servers().lagging = on; }

void fake_ensemble::step_time(any_duration step) {
    const duration d = step;
    if (d < duration::zero()) throw error(errc::invalid_argument, "fake_ensemble::step_time", {}, "it is negative");
    impl_->runs.step_time = d;
}

void fake_ensemble::check_containers_every(any_duration pause) {
    const duration d = pause;
    if (d <= duration::zero())
        throw error(errc::invalid_argument, "fake_ensemble::check_containers_every", {}, "it must be positive");
    impl_->runs.check_containers_every(d);
}

void fake_ensemble::session_timeouts(any_duration shortest, any_duration longest) {
    const std::chrono::milliseconds least = shortest, most = longest;
    if (least <= least.zero() || most < least)
        throw error(errc::invalid_argument, "fake_ensemble::session_timeouts", {}, "there are none between these two");
    impl_->servers().least_timeout = least;
    impl_->servers().most_timeout = most;
}

void fake_ensemble::know_containers(bool yes) { impl_->servers().know_containers = yes; }
void fake_ensemble::know_multi_read(bool yes) { impl_->servers().know_multi_read = yes; }
void fake_ensemble::know_create2(bool yes) { impl_->servers().know_create2 = yes; }
void fake_ensemble::know_watch_removal(bool yes) { impl_->servers().know_watch_removal = yes; }
void fake_ensemble::are_zookeepers(bool yes) { impl_->servers().are_zookeepers = yes; }
void fake_ensemble::watches_replace_each_other(bool yes) { impl_->servers().one_watch_at_a_path = yes; }
void fake_ensemble::max_request(std::size_t bytes) { impl_->servers().max_request = bytes; }

// ------------------------------------------------------------------------------------------------------ nodes

bool fake_ensemble::exists(const std::string& path) const { return impl_->servers().tree().find(path) != nullptr; }

std::optional<std::string> fake_ensemble::data(const std::string& path) const {
    const sim_node* node = impl_->servers().tree().find(path);
    return node ? std::optional<std::string>(node->data) : std::nullopt;
}

std::optional<node_stat> fake_ensemble::stat(const std::string& path) const {
    const sim_node* node = impl_->servers().tree().find(path);
    return node ? std::optional<node_stat>(node->stat) : std::nullopt;
}

std::vector<std::string> fake_ensemble::children(const std::string& path) const {
    return impl_->servers().tree().children(path);
}

std::vector<std::string> fake_ensemble::paths() const {
    std::vector<std::string> all;
    for (const auto& [path, node] : impl_->servers().tree().nodes())
        if (path != "/") all.push_back(path);
    return all;
}

bool fake_ensemble::owns(const zkasio::client& zk, const std::string& path) const {
    const sim_node* node = impl_->servers().tree().find(path);
    return node && node->stat.ephemeral_owner != 0 && node->stat.ephemeral_owner == session_id(zk);
}

void fake_ensemble::create(const std::string& path, std::string data) {
    check_path(path, "fake_ensemble::create");
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        if (const std::string parent = path.substr(0, end); !exists(parent)) create(parent);
    detail::create_request r;
    r.path = path;
    r.data = std::move(data);
    r.acl = open_acl();
    impl_->operate(r, "create", path);
}

void fake_ensemble::set(const std::string& path, std::string data) {
    impl_->operate(detail::set_request{path, std::move(data)}, "set", path);
}

void fake_ensemble::remove(const std::string& path) {
    impl_->operate(detail::remove_request{path}, "remove", path);
}

// ------------------------------------------------------------------------------------------ what is left behind

std::size_t fake_ensemble::watches() const { return impl_->servers().watches(); }

std::size_t fake_ensemble::watches(const zkasio::client& zk) const {
    return impl_->servers().watches_of(impl_->runs.number_of(zk, "fake_ensemble::watches"));
}

std::vector<std::string> fake_ensemble::watched_paths() const { return impl_->servers().watched_paths(); }

std::size_t fake_ensemble::requests(const zkasio::client& zk) const {
    return static_cast<std::size_t>(traffic(zk).requests);
}

traffic fake_ensemble::traffic(const zkasio::client& zk) const {
    return impl_->servers().traffic_of(impl_->runs.number_of(zk, "fake_ensemble::traffic"));
}

traffic fake_ensemble::traffic() const { return impl_->servers().whole_traffic(); }

std::size_t fake_ensemble::ephemerals() const {
    std::size_t count = 0;
    for (const auto& [path, node] : impl_->servers().tree().nodes()) count += node.stat.is_ephemeral() ? 1 : 0;
    return count;
}

std::size_t fake_ensemble::sessions() const { return impl_->servers().sessions(); }
std::size_t fake_ensemble::connections() const { return impl_->servers().backends_alive(); }

std::int64_t fake_ensemble::session_id(const zkasio::client& zk) const {
    return impl_->servers().session_of(impl_->runs.number_of(zk, "fake_ensemble::session_id"));
}

bool fake_ensemble::is_connected(const zkasio::client& zk) const {
    return impl_->servers().has_connection(impl_->runs.number_of(zk, "fake_ensemble::is_connected"));
}

void fake_ensemble::on_step(std::function<void(std::string_view)> log) { impl_->runs.log = std::move(log); }

}  // namespace zkasio::testing
