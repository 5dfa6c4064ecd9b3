#include "unit/support/error_of.hpp"
#include "unit/support/requests.hpp"

#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/operations.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using zkasio::test::code_thrown_by;
using zkasio::test::error_of;
using zkasio::test::has;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

constexpr std::size_t no_chroot = 0, below_chroot = 4;

std::error_code code_for(const request& r, std::size_t chroot_length = no_chroot) {
    return code_thrown_by([&] { validate(r, chroot_length); });
}

create_request creation(std::string path, create_mode mode = create_mode::persistent) {
    create_request r;
    r.path = std::move(path);
    r.acl = open_acl();
    r.mode = mode;
    return r;
}

multi_request multi(std::vector<multi_op> ops) { return multi_request{std::move(ops)}; }

// Every request that has a path, with that path.
std::vector<request> requests_for(const std::string& path) {
    return {creation(path),
            remove_request{path},
            set_request{path, "data"},
            exists_request{path},
            get_request{path},
            children_request{path},
            sync_request{path},
            get_acl_request{path},
            set_acl_request{path, open_acl()},
            remove_watch_request{path},
            ephemerals_request{path},
            count_below_request{path},
            add_watch_request{path},
            remove_added_watch_request{path},
            multi_read_request{{get_request{path}}},
            multi_read_request{{children_request{path}}},
            multi({creation(path)}),
            multi({set_request{path, ""}}),
            multi({remove_request{path}}),
            multi({check_op{path}})};
}

}  // namespace

TEST_CASE("validate: a mode that does not exist", "[validate]") {
    CHECK(code_for(creation("/a", static_cast<create_mode>(99))) == errc::invalid_argument);
}

TEST_CASE("validate: good requests of every kind", "[validate]") {
    for (const request& r : requests_for("/a/b")) CHECK(code_for(r) == std::error_code());
    CHECK(code_for(get_config_request{true}) == std::error_code());
    CHECK(code_for(who_am_i_request{}) == std::error_code());
    CHECK(code_for(multi_read_request{}) == std::error_code());
    CHECK(code_for(reconfig_request{"server.4=h:1:2;3", "", ""}) == std::error_code());
    CHECK(code_for(reconfig_request{"server.4=h:1:2;3", "3", ""}) == std::error_code());
    CHECK(code_for(reconfig_request{"", "", "server.1=h:1:2;3"}) == std::error_code());
    CHECK(code_for(add_auth_request{"digest", ""}) == std::error_code());
    CHECK(code_for(multi({})) == std::error_code());
}

TEST_CASE("validate: bad paths in every kind of request, named", "[validate]") {
    for (const std::string& path :
         {""s, "a"s, "/a/"s, "/a//b"s, "/a/.."s, "/./a"s, "/a\0"s, "/a\n"s, "/\xff"s, "/\xf0\x9f\x98\x80"s})
        for (const request& r : requests_for(path)) {
            INFO(operation_name(r) << " \"" << path << '"');
            const auto e = error_of([&] { validate(r, no_chroot); });
            REQUIRE(e);
            CHECK(e->code() == errc::invalid_path);
            CHECK(e->path() == path);
            const std::string step = std::holds_alternative<multi_request>(r)        ? " (step 1)"
                                     : std::holds_alternative<multi_read_request>(r) ? " (read 1)"
                                                                                     : "";
            CHECK(e->operation() == std::string(operation_name(r)) + step);
        }
}

TEST_CASE("validate: the name that a sequential node will have counts", "[validate]") {
    for (const create_mode mode : {create_mode::persistent_sequential, create_mode::ephemeral_sequential}) {
        CHECK(code_for(creation("/a/", mode)) == std::error_code());
        CHECK(code_for(creation("/", mode)) == std::error_code());
        CHECK(code_for(creation("/a/.", mode)) == std::error_code());
        CHECK(code_for(creation("/a//", mode)) == errc::invalid_path);
        CHECK(code_for(creation("", mode)) == errc::invalid_path);
        CHECK(code_for(creation("a", mode)) == errc::invalid_path);
        CHECK(code_for(creation("/./a", mode)) == errc::invalid_path);
    }
    for (const create_mode mode : {create_mode::persistent, create_mode::ephemeral, create_mode::container}) {
        CHECK(code_for(creation("/a/", mode)) == errc::invalid_path);
        CHECK(code_for(creation("/a/.", mode)) == errc::invalid_path);
    }
    const auto e = error_of([] { validate(creation("a/", create_mode::ephemeral_sequential), no_chroot); });
    REQUIRE(e);
    CHECK(e->path() == "a/");  // as it was given, without the '0'
}

TEST_CASE("validate: /zookeeper belongs to the server", "[validate]") {
    for (const std::string path : {"/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/zookeeper/quotas/a"}) {
        const std::vector<request> writes{
            creation(path),          set_request{path, ""},          remove_request{path},
            multi({creation(path)}), multi({set_request{path, ""}}), multi({remove_request{path}})};
        for (const request& r : writes) {
            INFO(operation_name(r) << ' ' << path);
            CHECK(code_for(r) == errc::invalid_path);
            CHECK(code_for(r, below_chroot) == std::error_code());
        }
        const std::vector<request> others{exists_request{path},   get_request{path},
                                          children_request{path}, sync_request{path},
                                          get_acl_request{path},  set_acl_request{path, open_acl()},
                                          multi({check_op{path}})};
        for (const request& r : others) CHECK(code_for(r) == std::error_code());
    }
    for (const std::string path : {"/zookeepers", "/zookeeper2/a", "/a/zookeeper", "/Zookeeper"})
        for (const request& r : requests_for(path)) CHECK(code_for(r) == std::error_code());
    CHECK(code_for(creation("/zookeeper/", create_mode::persistent_sequential)) == errc::invalid_path);
}

TEST_CASE("validate: nodes by which quotas are set may be written", "[validate]") {
    const std::string path = "/zookeeper/quota/app/zookeeper_limits";
    for (const request& r : requests_for(path)) CHECK(code_for(r) == std::error_code());
}

TEST_CASE("validate: the root is not removed", "[validate]") {
    for (const std::size_t chroot_length : {no_chroot, below_chroot}) {
        CHECK(code_for(remove_request{"/"}, chroot_length) == errc::invalid_argument);
        CHECK(code_for(multi({remove_request{"/"}}), chroot_length) == errc::invalid_argument);
    }
    CHECK(code_for(set_request{"/", ""}) == std::error_code());
    CHECK(code_for(get_request{"/"}) == std::error_code());
}

TEST_CASE("validate: versions", "[validate]") {
    constexpr auto lowest = std::numeric_limits<std::int32_t>::min(),
                   highest = std::numeric_limits<std::int32_t>::max();
    const auto of = [](std::int32_t v) {
        return std::vector<request>{
            set_request{"/a", "", v},          remove_request{"/a", v},          set_acl_request{"/a", open_acl(), v},
            multi({set_request{"/a", "", v}}), multi({remove_request{"/a", v}}), multi({check_op{"/a", v}})};
    };
    for (const std::int32_t v : {any_version, 0, 1, highest})
        for (const request& r : of(v)) CHECK(code_for(r) == std::error_code());
    for (const std::int32_t v : {-2, lowest})
        for (const request& r : of(v)) CHECK(code_for(r) == errc::invalid_argument);
}

TEST_CASE("validate: times to live", "[validate]") {
    constexpr std::chrono::milliseconds longest(0xffffffffff);  // EphemeralType.TTL.maxValue()
    const auto with = [](create_mode mode, std::chrono::milliseconds ttl) {
        create_request r = creation("/a", mode);
        r.ttl = ttl;
        return code_for(r);
    };
    for (const create_mode mode : {create_mode::persistent_ttl, create_mode::persistent_sequential_ttl}) {
        CHECK(with(mode, 1ms) == std::error_code());
        CHECK(with(mode, longest) == std::error_code());
        CHECK(with(mode, 0ms) == errc::invalid_argument);
        CHECK(with(mode, -1ms) == errc::invalid_argument);
        CHECK(with(mode, longest + 1ms) == errc::invalid_argument);
        CHECK(with(mode, std::chrono::milliseconds::max()) == errc::invalid_argument);
    }
    for (const create_mode mode : {create_mode::persistent, create_mode::ephemeral, create_mode::persistent_sequential,
                                   create_mode::ephemeral_sequential, create_mode::container}) {
        CHECK(with(mode, 0ms) == std::error_code());
        CHECK(with(mode, 1ms) == errc::invalid_argument);
    }
}

TEST_CASE("validate: ACLs", "[validate]") {
    const auto with = [](const acl& entries) {
        create_request r = creation("/a");
        r.acl = entries;
        const auto created = code_for(r), step = code_for(multi({r})),
                   changed = code_for(set_acl_request{"/a", entries});
        CHECK(created == step);
        CHECK(created == changed);
        return created;
    };
    CHECK(with(creator_all_acl()) == std::error_code());
    CHECK(with({acl_entry(permission::none, acl_id("custom", ""))}) == std::error_code());
    CHECK(with({}) == zk_errc::invalid_acl);
    CHECK(with({acl_entry(permission::all, acl_id("ip\0"s, "1.2.3.4"))}) == zk_errc::invalid_acl);
    CHECK(with({acl_entry(permission::all, anyone()), acl_entry(permission::all, acl_id("ip", "\0"s))}) ==
          zk_errc::invalid_acl);
}

TEST_CASE("validate: what the C client cannot do in a transaction", "[validate]") {
    // Fact 16: it aborts the process.
    for (const create_mode mode :
         {create_mode::container, create_mode::persistent_ttl, create_mode::persistent_sequential_ttl}) {
        create_request c = creation("/a", mode);
        if (has_ttl(mode)) c.ttl = 1s;
        CHECK(code_for(c) == std::error_code());
        CHECK(code_for(multi({c})) == errc::invalid_argument);
        const auto e = error_of([&] { validate(multi({check_op{"/a"}, creation("/b"), c}), no_chroot); });
        REQUIRE(e);
        CHECK(e->operation() == "multi (step 3)");
        CHECK(e->path() == "/a");
        CHECK(has(e->what(), "transaction"));
    }
    for (const create_mode mode : {create_mode::persistent, create_mode::ephemeral, create_mode::persistent_sequential,
                                   create_mode::ephemeral_sequential})
        CHECK(code_for(multi({creation("/a", mode)})) == std::error_code());
}

TEST_CASE("validate: the step of a transaction that is wrong is named", "[validate]") {
    for (std::size_t at = 0; at < 3; ++at) {
        std::vector<multi_op> ops{check_op{"/a"}, set_request{"/b", ""}, remove_request{"/c"}};
        ops[at] = check_op{"bad"};
        const auto e = error_of([&] { validate(multi(ops), no_chroot); });
        REQUIRE(e);
        CHECK(e->operation() == "multi (step " + std::to_string(at + 1) + ")");
        CHECK(e->path() == "bad");
    }
}

TEST_CASE("validate: authentication", "[validate]") {
    CHECK(code_for(add_auth_request{"", "user:password"}) == errc::invalid_argument);
    CHECK(code_for(add_auth_request{"dig\0est"s, ""}) == errc::invalid_argument);
    CHECK(code_for(add_auth_request{"digest", "a\0b"s}) == std::error_code());  // a credential is bytes
    const auto e = error_of([] { validate(add_auth_request{"", "user:password"}, no_chroot); });
    REQUIRE(e);
    CHECK_FALSE(has(e->what(), "password"));
}

TEST_CASE("validate: reconfiguration", "[validate]") {
    CHECK(code_for(reconfig_request{"", "", ""}) == errc::invalid_argument);
    CHECK(code_for(reconfig_request{"a", "", "b"}) == errc::invalid_argument);
    CHECK(code_for(reconfig_request{"", "a", "b"}) == errc::invalid_argument);
    CHECK(code_for(reconfig_request{"a", "b", "c"}) == errc::invalid_argument);
}

TEST_CASE("validate: the size limit, on both sides", "[validate]") {
    constexpr std::size_t limit = 1024 * 1024 - 1024;
    STATIC_REQUIRE(operations::max_request == limit);
    using maker = std::function<request(std::size_t)>;
    const auto filler = [](std::size_t n) { return std::string(n, 'x'); };
    const std::vector<maker> makers{
        [&](std::size_t n) {
            create_request r = creation("/a");
            r.data = filler(n);
            return r;
        },
        [&](std::size_t n) { return creation("/" + filler(n)); },
        [&](std::size_t n) {
            create_request r = creation("/a");
            r.acl.emplace_back(permission::all, acl_id("x509", filler(n)));
            return r;
        },
        [&](std::size_t n) {
            return set_request{"/a", filler(n)};
        },
        [&](std::size_t n) {
            return set_acl_request{"/a", {acl_entry(permission::all, acl_id("x509", filler(n)))}};
        },
        [&](std::size_t n) { return get_request{"/" + filler(n)}; },
        [&](std::size_t n) {
            return multi({check_op{"/a"}, set_request{"/a", filler(n / 2)}, set_request{"/b", filler(n - n / 2)}});
        },
        [&](std::size_t n) {
            return add_auth_request{"digest", filler(n)};
        },
        [&](std::size_t n) {
            return reconfig_request{filler(n), "", ""};
        },
    };
    for (const maker& make : makers) {
        const std::size_t room = limit - encoded_size(make(0));
        const request largest = make(room), too_large = make(room + 1);
        INFO(operation_name(largest));
        CHECK(code_for(largest) == std::error_code());
        CHECK(code_for(too_large) == errc::too_large);
        CHECK(test::on_the_wire(largest).size() <= limit);
        CHECK(test::on_the_wire(largest).size() > limit - 128);  // and not much is given away
        const auto e = error_of([&] { validate(too_large, no_chroot); });
        REQUIRE(e);
        CHECK(e->path() == path_of(too_large));
        CHECK(has(e->what(), std::to_string(limit)));
    }
}

TEST_CASE("validate: the chroot in front of each path counts", "[validate]") {
    constexpr std::size_t limit = operations::max_request, chroot_length = 1000;
    const set_request plain{"/a", std::string(limit - encoded_size(set_request{"/a", ""}) - chroot_length, 'x')};
    CHECK(code_for(plain, chroot_length) == std::error_code());
    CHECK(code_for(plain, chroot_length + 1) == errc::too_large);

    multi_request checks;
    while (encoded_size(checks) + (checks.ops.size() + 1) * (chroot_length + 25) <= limit)
        checks.ops.emplace_back(check_op{"/a"});
    CHECK(checks.ops.size() > 900);
    CHECK(code_for(checks, chroot_length) == std::error_code());
    CHECK(code_for(checks, chroot_length + 100) == errc::too_large);
    CHECK(code_for(checks, no_chroot) == std::error_code());
}
