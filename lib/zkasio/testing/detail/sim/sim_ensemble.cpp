#include <zkasio/testing/detail/sim/sim_link.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace zkasio::testing_detail {

using namespace detail;

sim_ensemble::sim_ensemble() = default;
sim_ensemble::~sim_ensemble() = default;

backend_factory sim_ensemble::factory(int client) {
    return [this, client](backend_listener& listener) -> std::unique_ptr<backend> {
        return std::make_unique<sim_link>(*this, client, listener);
    };
}

// --------------------------------------------------------------------------------------------- what may happen

void sim_ensemble::list_steps(std::vector<step>& steps) const {
    steps.clear();
    for (sim_link* l : links_) l->list_steps(steps);
}

bool sim_ensemble::idle() const {
    std::vector<step> steps;
    list_steps(steps);
    return steps.empty();
}

void sim_ensemble::take(const step& s) {
    if (on_log) on_log(to_string(s));
    if (!is_possible(s)) return;  // on_log() has made the step impossible
    switch (s.what) {
        case step::kind::connect: return s.whose->connect();
        case step::kind::apply: return s.whose->apply();
        case step::kind::catch_up: return s.whose->catch_up_one();
        case step::kind::deliver: return s.whose->deliver();
    }
}

bool sim_ensemble::is_possible(const step& s) const {
    std::vector<step> steps;
    for (sim_link* l : links_)
        if (l == s.whose) l->list_steps(steps);
    return std::any_of(steps.begin(), steps.end(), [&](const step& one) { return one.what == s.what; });
}

// ------------------------------------------------------------------------------------------- what a test does

bool sim_ensemble::drop_connection(int client, std::size_t applied, std::size_t delivered) {
    sim_link* l = link_of(client);
    if (!l || !l->attached()) return false;
    if (on_log)
        on_log("drop " + std::to_string(client) + ", " + std::to_string(applied) + " applied, " +
               std::to_string(delivered) + " delivered");
    l = link_of(client);  // on_log() may have ended the connection
    if (!l || !l->attached()) return false;
    l->drop(applied, delivered);
    return true;
}

bool sim_ensemble::drop_connection(int client) {
    const std::size_t applied = pick(requests_under_way(client) + 1);
    const std::size_t delivered = pick(answers_under_way(client) + 1);
    return drop_connection(client, applied, delivered);
}

bool sim_ensemble::expire(int client) {
    const std::int64_t session = session_of(client);
    if (!alive(session)) return false;
    if (on_log) on_log("expire " + std::to_string(client));
    if (!alive(session)) return true;
    end_session(session);
    drop_connection(client, 0, pick(answers_under_way(client) + 1));
    return true;
}

bool sim_ensemble::expire_session(std::int64_t session) {
    for (const sim_link* l : links_)
        if (l->session() == session) return expire(l->client());
    if (!alive(session)) return false;
    end_session(session);
    return true;
}

void sim_ensemble::stop_process(int client) {
    if (on_log) on_log("stop " + std::to_string(client));
    stopped_.insert(client);
}

void sim_ensemble::continue_process(int client) {
    if (stopped_.erase(client) == 0) return;
    if (on_log) on_log("continue " + std::to_string(client));
    if (sim_link* l = link_of(client))
        while (l->answers() > 0) l->deliver();
}

void sim_ensemble::cut_off(int client) {
    end_read_only(client);
    cut_off_.insert(client);
    drop_connection(client);
}

void sim_ensemble::hang_up(int client) {
    hung_up_.insert(client);
    drop_connection(client);
}

void sim_ensemble::let_in(int client) {
    end_read_only(client);
    cut_off_.erase(client);
    hung_up_.erase(client);
}

void sim_ensemble::lose_quorum(int client) {
    const std::int64_t known = first_known(false, 0);
    cut_off(client);
    read_only_known_[client] = known;
}

void sim_ensemble::end_read_only(int client) {
    if (read_only_known_.erase(client) == 0) return;
    for (sim_link* l : links_)
        if (l->client() == client && l->read_only() && l->attached()) l->drop(0, 0);
}

void sim_ensemble::refuse(const std::string& path, std::error_code why) {
    const std::error_code before = std::exchange(refused_[path], why);
    if ((why == zk_errc::no_auth) != (before == zk_errc::no_auth)) touch_acls(path);
}

void sim_ensemble::accept(const std::string& path) {
    const auto one = refused_.find(path);
    if (one == refused_.end()) return;
    const bool other_acl = one->second == zk_errc::no_auth;
    refused_.erase(one);
    if (other_acl) touch_acls(path);
}

void sim_ensemble::touch_acls(const std::string& path) {
    sim_txn txn = begin(0);
    tree_.touch_acls(path, txn);
    commit(std::move(txn));
}

std::error_code sim_ensemble::operate(const multi_op& op) {
    sim_txn txn = begin(0);
    const multi_result result = tree_.perform(op, txn);
    commit(std::move(txn));
    return result.code;
}

std::error_code sim_ensemble::operate(const std::vector<multi_op>& ops) {
    sim_txn txn = begin(0);
    std::vector<multi_result> results;
    const std::error_code code = tree_.perform(ops, txn, results);
    commit(std::move(txn));
    return code;
}

std::error_code sim_ensemble::operate(const set_acl_request& r) {
    sim_txn txn = begin(0);
    const multi_result result = tree_.set_acl(r, txn, nullptr);
    commit(std::move(txn));
    return result.code;
}

void sim_ensemble::remove_empty_containers() {
    std::vector<std::string> empty;
    for (const auto& [path, node] : tree_.nodes())
        if (node.mode == create_mode::container && node.created_children > 0 && node.stat.num_children == 0)
            empty.push_back(path);
    for (const std::string& path : empty) operate(remove_request{path});
}

// --------------------------------------------------------------------------------------------- what there is

sim_link* sim_ensemble::link_of(int client) const {
    const auto it =
        std::find_if(links_.begin(), links_.end(),
                     [&](const sim_link* l) { return l->client() == client && !l->read_only(); });
    return it == links_.end() ? nullptr : *it;
}

std::int64_t sim_ensemble::session_of(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->session() : 0;
}

bool sim_ensemble::has_connection(int client) const {
    const sim_link* l = link_of(client);
    return l && l->attached();
}

bool sim_ensemble::alive(std::int64_t session) const { return sessions_.contains(session); }

void sim_ensemble::list_heard(std::vector<std::int64_t>& to) const {
    for (const sim_link* l : links_)
        if (l->attached() && !l->read_only() && !is_silent(l->client())) to.push_back(l->session());
}

std::size_t sim_ensemble::watches() const {
    std::size_t n = 0;
    for (const sim_link* l : links_) n += l->watches();
    return n;
}

std::size_t sim_ensemble::watches_of(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->watches() : 0;
}

std::string sim_ensemble::watched(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->watched() : std::string();
}

std::vector<std::string> sim_ensemble::watched_paths() const {
    std::set<std::string> paths;
    for (const sim_link* l : links_) l->list_watched(paths);
    return {paths.begin(), paths.end()};
}

testing::traffic sim_ensemble::traffic_of(int client) const {
    const auto it = traffic_.find(client);
    return it == traffic_.end() ? testing::traffic() : it->second;
}

testing::traffic sim_ensemble::whole_traffic() const {
    testing::traffic all;
    for (const auto& [client, of_client] : traffic_) all += of_client;
    return all;
}

std::chrono::milliseconds sim_ensemble::granted_timeout(int client) const {
    const auto it = sessions_.find(session_of(client));
    return it == sessions_.end() ? std::chrono::milliseconds(0) : it->second;
}

std::int64_t sim_ensemble::connected_at(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->connected_at() : 0;
}

std::size_t sim_ensemble::requests_under_way(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->requests() : 0;
}

std::size_t sim_ensemble::answers_under_way(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->answers() : 0;
}

std::string sim_ensemble::next_request(int client) const {
    const sim_link* l = link_of(client);
    return l ? l->next_request() : std::string();
}

// ----------------------------------------------------------------------------------------------- the leader

sim_txn sim_ensemble::begin(std::int64_t session) {
    sim_txn txn;
    txn.zxid = last_zxid() + 1;
    txn.time = clock ? clock() : txn.zxid;
    txn.session = session;
    return txn;
}

void sim_ensemble::commit(sim_txn txn) {
    log_.push_back(std::move(txn));
    on_commit(log_.back());
    if (lagging) return;
    for (sim_link* l : links_)
        if (l->attached() && !l->read_only()) l->catch_up(last_zxid());
}

// The zxid that the server of a new connection knows: never less than the client has seen in this session.
std::int64_t sim_ensemble::first_known(bool new_session, std::int64_t seen) const {
    if (new_session ? !new_sessions_lag : !lagging) return last_zxid();
    const auto behind = static_cast<std::size_t>(last_zxid() - seen);
    return last_zxid() - static_cast<std::int64_t>(pick(std::min(behind, most_lag) + 1));
}

std::chrono::milliseconds sim_ensemble::grant(std::chrono::milliseconds asked_for) const {
    return std::clamp(asked_for, least_timeout, most_timeout);
}

std::int64_t sim_ensemble::open_session(std::chrono::milliseconds timeout) {
    sim_txn txn = begin(0);
    const std::int64_t session = 0x1000 + txn.zxid;
    sessions_[session] = timeout;
    commit(std::move(txn));
    return session;
}

void sim_ensemble::end_session(std::int64_t session) {
    require_readable_end(session);
    sessions_.erase(session);
    sim_txn txn = begin(session);
    txn.ends_session = true;
    for (const std::string& path : tree_.ephemerals_of(session)) tree_.perform(remove_request{path}, txn);
    commit(std::move(txn));
}

// The transaction that ends a session lists the paths of its ephemeral nodes: a header of 32 bytes, a count of 4, each
// path behind its length, a digest of 12. A server writes it whatever its size, and reads back (from its log, or from
// the leader) at most jute.maxbuffer and once more as much (zookeeper.jute.maxbuffer.extrasize): above that it does not
// start again, ZOOKEEPER-4306.
void sim_ensemble::require_readable_end(std::int64_t session) const {
    constexpr std::size_t around = 32 + 4 + 12, most = 2 * 1'048'575;
    std::size_t bytes = around;
    for (const std::string& path : tree_.ephemerals_of(session)) bytes += 4 + path.size();
    if (bytes > most)
        throw std::logic_error("fake_ensemble: the end of a session would be a transaction of " +
                               std::to_string(bytes) + " bytes, of which real servers read back at most " +
                               std::to_string(most) + ": they would not start again");
}

std::error_code sim_ensemble::refusal_of(const std::string& path) const {
    // In the order of paths a node follows its ancestors: in reverse, the first match is the nearest one.
    for (auto r = refused_.rbegin(); r != refused_.rend(); ++r) {
        const std::string& root = r->first;
        if (path == root || root == "/" || (path.starts_with(root) && path[root.size()] == '/')) return r->second;
    }
    return {};
}

std::string to_string(const sim_ensemble::step& s) {
    using kind = sim_ensemble::step::kind;
    const std::string client = std::to_string(s.client);
    switch (s.what) {
        case kind::connect: return "connect " + client;
        case kind::apply: return "apply " + client + ": " + s.whose->next_request();
        case kind::catch_up: return "catch up " + client;
        case kind::deliver: return "deliver " + client + ": " + s.whose->next_answer();
    }
    return {};
}

}  // namespace zkasio::testing_detail
