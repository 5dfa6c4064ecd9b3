#include <zkasio/locks/lock_listing.hpp>

#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/nodes_claim.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace zkasio {

using namespace lock_detail;

std::string_view to_string(lock_directory_kind k) noexcept {
    switch (k) {
        case lock_directory_kind::empty: return "empty";
        case lock_directory_kind::mutex: return "mutex";
        case lock_directory_kind::shared_mutex: return "shared_mutex";
        case lock_directory_kind::election: return "election";
        case lock_directory_kind::semaphore: return "semaphore";
        case lock_directory_kind::single_node: return "single_node";
        case lock_directory_kind::other: return "other";
    }
    return "unknown";
}

namespace {

struct marker {
    std::string text;
    lock_directory_kind directory;
    lock_kind contender;
};

// The markers of the locks themselves, which are read as the locks read them: another program may name its nodes
// "lock-<number>", without an id, and is the holder if it is the first.
const std::vector<marker>& markers() {
    using enum lock_directory_kind;
    static const std::vector<marker> all{
        {name_scheme::curator().mutex_marker(), mutex, lock_kind::exclusive},
        {name_scheme::kazoo().mutex_marker(), mutex, lock_kind::exclusive},  // also of kazoo's writers
        {name_scheme::kazoo().read_marker(), shared_mutex, lock_kind::shared},
        {name_scheme::curator().read_marker(), shared_mutex, lock_kind::shared},
        {name_scheme::curator().write_marker(), shared_mutex, lock_kind::exclusive},
        {name_scheme::curator_latch().mutex_marker(), election, lock_kind::exclusive},
        {permit_marker, semaphore, lock_kind::shared},
    };
    return all;
}

using marker_list = std::vector<marker>;

marker_list markers_of(const name_scheme& names) {
    using enum lock_directory_kind;
    if (names.read_marker().empty()) return {{names.mutex_marker(), mutex, lock_kind::exclusive}};
    marker_list known{{names.read_marker(), shared_mutex, lock_kind::shared},
                      {names.write_marker(), shared_mutex, lock_kind::exclusive}};
    if (names.mutex_marker() != names.write_marker())
        known.push_back({names.mutex_marker(), mutex, lock_kind::exclusive});
    return known;
}

const marker* marker_of(std::string_view name, const marker_list& known) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const marker& m) { return sequence_of(name, m.text).has_value(); });
    return found == known.end() ? nullptr : &*found;
}

// The queue of one directory with these children. Nodes of all kinds get their numbers from one counter, which wraps
// around: the numbers are compared relative to the first one.
asio::awaitable<void> read_queue(client zk, std::string directory, std::vector<std::string> children,
                                 const marker_list& known, lock_listing& list) {
    struct numbered {
        std::int32_t number;
        queue_names::contender_name what;
    };
    std::vector<numbered> found;
    std::uint32_t base = 0;
    for (std::string& name : children) {
        const marker* const m = marker_of(name, known);
        if (!m) {
            list.foreign.push_back(std::move(name));
            continue;
        }
        if (list.kind == lock_directory_kind::empty || m->directory == lock_directory_kind::shared_mutex)
            list.kind = m->directory;
        const auto number = static_cast<std::uint32_t>(*sequence_of(name, m->text));
        if (found.empty()) base = number;
        found.push_back({static_cast<std::int32_t>(number - base), {std::move(name), m->contender}});
    }
    // A reader has the number of the writer that it was before, whose node a listing may still show.
    std::sort(found.begin(), found.end(), [](const numbered& a, const numbered& b) {
        return a.number != b.number ? a.number < b.number : a.what.kind < b.what.kind;
    });
    std::vector<queue_names::contender_name> names;
    names.reserve(found.size());
    for (numbered& n : found) names.push_back(std::move(n.what));
    std::sort(list.foreign.begin(), list.foreign.end());
    list.contenders = co_await read_contenders(zk, directory, std::move(names));
}

// The first contender in `locks` creates its leases, and then waits until there are no more leases than permits. So
// while its turn is not over, the newest leases may be of a contender that still waits: then they are no permits. The
// leases of one request are created one behind another, unless another client writes in between; between those of two
// requests, a node in `locks` was removed.
void drop_those_that_wait(std::vector<contender_info>& leases, const contender_info& first) {
    std::int64_t next = 0;  // the czxid of the lease that was dropped last
    while (!leases.empty()) {
        const contender_info& newest = leases.back();
        const std::int64_t czxid = newest.token.value();
        if (newest.session_id != first.session_id || newest.token < first.token) return;
        if (next != 0 && czxid + 1 != next) return;
        next = czxid;
        leases.pop_back();
    }
}

asio::awaitable<void> read_semaphore(client zk, lock_listing& list) {
    lock_listing queue, leases;
    // In this order: a contender that is granted a permit in between is seen at least once.
    for (lock_listing* const part : {&queue, &leases}) {
        const std::string directory = join_path(list.path, part == &queue ? "locks" : "leases");
        std::vector<std::string> children = co_await children_if_any(zk, directory);
        co_await read_queue(zk, directory, std::move(children), markers(), *part);
    }
    if (!queue.contenders.empty()) drop_those_that_wait(leases.contenders, queue.contenders.front());
    const directory_note note = co_await read_note(zk, join_path(list.path, "leases"));
    mark_noted(leases.contenders, note);
    for (contender_info& c : leases.contenders) c.holds = true;
    for (lock_listing* const part : {&leases, &queue}) {
        std::move(part->contenders.begin(), part->contenders.end(), std::back_inserter(list.contenders));
        std::move(part->foreign.begin(), part->foreign.end(), std::back_inserter(list.foreign));
    }
    list.kind = lock_directory_kind::semaphore;
}

bool is_semaphore(const std::vector<std::string>& children) {
    const auto is = [&](std::string_view name) {
        return std::find(children.begin(), children.end(), name) != children.end();
    };
    return is("leases") && children.size() == (is("locks") ? 2 : 1);
}

asio::awaitable<lock_listing> read_directory(client zk, std::string path, std::optional<name_scheme> names) {
    lock_listing list;
    list.path = path;
    std::optional<node_data> node = co_await if_exists(zk.get(path));
    list.exists = node.has_value();
    if (!node) co_return list;
    if (node->stat.ephemeral_owner != 0) {
        list.kind = lock_directory_kind::single_node;
        list.contenders.push_back(info_of(path, std::move(*node)));
        mark_holders(list.contenders);
        co_return list;
    }
    const directory_note note = directory_note::parse(node->data);
    std::vector<std::string> children = co_await children_if_any(zk, path);
    if (!names && is_semaphore(children)) {
        co_await read_semaphore(zk, list);
        co_return list;
    }
    const marker_list known = names ? markers_of(*names) : markers();
    co_await read_queue(zk, path, std::move(children), known, list);
    mark_holders(list.contenders);
    mark_noted(list.contenders, note);
    if (list.contenders.empty() && !list.foreign.empty()) list.kind = lock_directory_kind::other;
    co_return list;
}

}  // namespace

std::vector<contender_info> lock_listing::holders() const {
    std::vector<contender_info> found;
    std::copy_if(contenders.begin(), contenders.end(), std::back_inserter(found),
                 [](const contender_info& c) { return c.holds; });
    return found;
}

asio::awaitable<lock_listing> list_lock(client zk, std::string path) {
    return errors_as("list_lock", path, read_directory(std::move(zk), path, std::nullopt));
}

asio::awaitable<lock_listing> list_lock(client zk, std::string path, name_scheme names) {
    return errors_as("list_lock", path, read_directory(std::move(zk), path, std::move(names)));
}

}  // namespace zkasio
