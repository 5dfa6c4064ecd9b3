// Members of a group and instances of a service that come, change and go at random, and members of a partitioner that
// come and go, over cuts and kills of servers. In each pause a fresh listing shows exactly those that are to stand, and
// so do an observer and a provider, and each partition has one owner.

#include "faults/truth.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/fencing_token.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace discovery_truth_test {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;

namespace {

const std::string root = "/members-truth", group_path = root + "/group", base = root + "/services", service = "orders",
                  partitioner_path = root + "/work";

const std::vector<std::string> partitions{"p0", "p1", "p2", "p3", "p4", "p5", "p6"};

using truths = std::map<std::string, std::string>;  // data, by the names of the nodes
using tokens = std::map<std::string, fencing_token>;

service_instance instance_of(const std::string& id, std::uint16_t port) {
    return service_instance(service).id(id).address("10.0.0.1").port(port).registered({});
}

truths shown_by(const group_view& view) {
    truths all;
    for (const member_info& m : view.members) all[m.id] = m.data;
    return all;
}
truths shown_by(const service_view& view) {
    truths all;
    view.for_each([&](const std::string& node, const service_instance& is) { all[node] = is.to_json(); });
    return all;
}

// As soon as the servers answer.
asio::awaitable<truths> listing_of(client zk, std::string directory) {
    for (;;) {
        truths all;
        std::error_code failed;
        try {
            co_await zk.sync(directory);
            const node_children children = co_await zk.children(directory);
            for (const std::string& name : children.names) {
                const node_data node = co_await zk.get(directory + "/" + name);
                all[name] = node.data;
            }
        } catch (const error& e) {
            failed = e.code();
            if (failed != condition::retryable && failed != zk_errc::no_node) throw;
        }
        if (!failed) co_return all;
    }
}

// ------------------------------------------------------------------------------------------------- who comes and goes
// The members and instances of one client, whose ids are its own, and its part of the partitions.
class crew {
public:
    crew(client zk, std::string name, unrest& of, tokens& last)
        : zk_(zk), group_(zk, group_path), registry_(zk, base), name_(std::move(name)), of_(of), last_(last) {}

    asio::awaitable<void> change_until_over() {
        while (!of_.over) {
            const std::string id = name_ + std::to_string(of_.below(6));
            const unsigned what = of_.below(9);
            if (what == 0)
                co_await change_share();
            else if (what % 2 == 0)
                co_await change_member(id);
            else
                co_await change_instance(id);
            ++of_.changes;
        }
    }
    asio::awaitable<void> end() {
        while (!members_.empty()) co_await leave(members_.begin()->first);
        while (!instances_.empty()) co_await withdraw(instances_.begin()->first);
        if (share_) co_await change_share();
    }
    void add_members_to(truths& all) const {
        for (const auto& [id, m] : members_) all[id] = m.data;
    }
    void add_instances_to(truths& all) const {
        for (const auto& [id, i] : instances_) all[id] = i.is.to_json();
    }
    bool has_share() const { return share_.has_value(); }
    bool owns_its_share() const { return !share_ || share_->of.state() == partitioner_state::acquired; }
    void add_owned_to(truths& all) const {
        if (!share_) return;
        for (const std::string& partition : share_->of.owned()) all[partition] += "owner ";
    }

private:
    struct member {
        group_membership stands;
        std::string data;
    };
    struct instance {
        announcement stands;
        service_instance is;
    };
    struct share {
        partitioner of;
        running runs;
    };

    asio::awaitable<void> change_member(std::string id) {
        const std::string data = std::to_string(of_.random());
        const auto known = members_.find(id);
        if (known == members_.end()) {
            group_membership made = co_await group_.join(id, data);
            members_.emplace(id, member{std::move(made), data});
        } else if (of_.below(2) == 0) {
            co_await known->second.stands.set_data(data);
            known->second.data = data;
        } else {
            co_await leave(id);
        }
    }
    asio::awaitable<void> change_instance(std::string id) {
        const service_instance is = instance_of(id, static_cast<std::uint16_t>(1 + of_.below(60'000)));
        const auto known = instances_.find(id);
        if (known == instances_.end()) {
            announcement made = co_await registry_.announce(is);
            instances_.emplace(id, instance{std::move(made), is});
        } else if (of_.below(2) == 0) {
            co_await known->second.stands.update(is);
            known->second.is = is;
        } else {
            co_await withdraw(id);
        }
    }
    asio::awaitable<void> change_share() {
        if (share_) {
            share_->runs.cancel();
            const std::error_code ended = co_await share_->runs.code();
            CHECK(ended == asio::error::operation_aborted);
            share_.reset();
            co_return;
        }
        auto own = [this](held_partition& p) -> asio::awaitable<void> {
            fencing_token& last = last_[p.name()];
            CHECK(last < p.token());
            last = p.token();
            co_await p.lost();
        };
        const partitioner_options how = partitioner_options().settle(paced(200ms));
        const partitioner of(zk_, partitioner_path, partitions, how);
        const asio::any_io_executor executor = co_await asio::this_coro::executor;
        share_.emplace(share{of, running(executor, of.run(std::move(own)))});
    }
    asio::awaitable<void> leave(std::string id) {
        co_await members_.at(id).stands.leave();
        members_.erase(id);
    }
    asio::awaitable<void> withdraw(std::string id) {
        co_await instances_.at(id).stands.withdraw();
        instances_.erase(id);
    }

    client zk_;
    group group_;
    registry registry_;
    const std::string name_;
    unrest& of_;
    tokens& last_;
    std::optional<share> share_;
    std::map<std::string, member> members_;
    std::map<std::string, instance> instances_;
};

}  // namespace

TEST_CASE("members, instances and partitions: in each pause of random changes and cuts and kills all is as it stands") {
    troubled_servers some;
    int rounds = 0;
    unrest changes;
    tokens last;
    test_loop loop(how_long() + 180s);
    auto body = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const client_options patient = options(some.servers.connect_string()).session_timeout(paced(20s));
        const client_options over_proxies = options(some.proxies()).session_timeout(paced(20s));
        const test_client reader(executor, over_proxies), cut(executor, over_proxies);
        const test_client lister(executor, patient), calm(executor, patient);
        co_await lister.create(root);
        co_await lister.create(group_path);
        const create_options with_parents = create_options().parents(missing_parents::create_persistent);
        co_await lister.create(base + "/" + service, bytes(), with_parents);
        crew a(calm, "a", changes, last), b(cut, "b", changes, last);
        const group_observer observer = group(reader, group_path).observe();
        const provider orders(reader, base, service);

        const auto end = std::chrono::steady_clock::now() + how_long();
        for (; std::chrono::steady_clock::now() < end; ++rounds) {
            const unsigned what = changes.below(7);
            changes.over = false;
            std::vector<running> changing;
            for (crew* one : {&a, &b}) changing.emplace_back(executor, one->change_until_over());
            co_await some.trouble(what, changes);
            changes.over = true;
            co_await until_ended(changing);
            truths members, instances;
            for (const crew* one : {&a, &b}) {
                one->add_members_to(members);
                one->add_instances_to(instances);
            }
            const truths listed_members = co_await listing_of(lister, group_path);
            CHECK(listed_members == members);
            const truths listed_instances = co_await listing_of(lister, base + "/" + service);
            CHECK(listed_instances == instances);
            const auto of_observer = [&] {
                const group_view view = observer.members();
                return std::pair(view.current, shown_by(view));
            };
            co_await until_shown("the observer", of_observer, members);
            const auto of_provider = [&] {
                const service_view view = orders.view();
                return std::pair(view.current(), shown_by(view));
            };
            co_await until_shown("the provider", of_provider, instances);
            truths one_owner_each;
            if (a.has_share() || b.has_share())
                for (const std::string& partition : partitions) one_owner_each[partition] = "owner ";
            const auto of_partitions = [&] {
                truths owned;
                for (const crew* one : {&a, &b}) one->add_owned_to(owned);
                return std::pair(a.owns_its_share() && b.owns_its_share(), owned);
            };
            co_await until_shown("the partitions", of_partitions, one_owner_each);
            const group_view read_members = co_await group(lister, group_path).members();
            CHECK(shown_by(read_members) == members);
            const service_view read_instances = co_await registry(lister, base).instances(service);
            CHECK(shown_by(read_instances) == instances);
        }
        co_await a.end();
        co_await b.end();
        co_await orders.close();
        co_await reader.close();
        co_await cut.close();
        co_await calm.close();
        co_await lister.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
    CHECK(rounds > 0);
    if (std::getenv("ZKASIO_CACHE_TRUTH_SECONDS"))
        WARN(rounds << " pauses, " << some.kills << " kills, " << changes.changes << " changes");
}

}  // namespace discovery_truth_test
