#include "unit/support/requests.hpp"

#include "support/catch.hpp"

#include <random>
#include <string>

using namespace zkasio;
using namespace zkasio::detail;
using zkasio::test::each_kind_of_request;
using zkasio::test::on_the_wire;

TEST_CASE("backend: which requests are writes", "[backend]") {
    for (const auto& r : each_kind_of_request()) {
        INFO(r.name);
        CHECK(is_write(r.what) == r.is_write);
    }
}

TEST_CASE("backend: what requests are called", "[backend]") {
    for (const auto& r : each_kind_of_request()) CHECK(operation_name(r.what) == r.name);
}

TEST_CASE("backend: the path that a request speaks of", "[backend]") {
    for (const auto& r : each_kind_of_request()) {
        INFO(r.name);
        CHECK(path_of(r.what) == r.path);
    }
}

TEST_CASE("backend: the size of a request is never estimated too low", "[backend]") {
    for (const auto& r : each_kind_of_request()) {
        INFO(r.name);
        const std::size_t real = on_the_wire(r.what).size();
        CHECK(encoded_size(r.what) >= real);
        CHECK(encoded_size(r.what) <= real + 128);
    }
}

TEST_CASE("backend: the size of random requests is never estimated too low", "[backend]") {
    std::mt19937 random(1);
    const auto text = [&] { return std::string(random() % 50, 'x'); };
    const auto entries = [&] {
        acl result;
        for (std::size_t n = random() % 4; n > 0; --n) result.emplace_back(permission::all, acl_id(text(), text()));
        return result;
    };
    const auto create = [&] {
        create_request c;
        c.path = text();
        c.data = text();
        c.acl = entries();
        c.mode = static_cast<create_mode>(random() % 7);
        return c;
    };
    for (int round = 0; round < 2000; ++round) {
        std::vector<request> all{create(),
                                 set_request{text(), text()},
                                 remove_request{text()},
                                 exists_request{text()},
                                 get_request{text()},
                                 children_request{text()},
                                 sync_request{text()},
                                 get_acl_request{text()},
                                 set_acl_request{text(), entries()},
                                 get_config_request{},
                                 reconfig_request{text(), text(), text()},
                                 add_auth_request{text(), text()},
                                 remove_watch_request{text()},
                                 who_am_i_request{},
                                 ephemerals_request{text()},
                                 count_below_request{text()},
                                 add_watch_request{text()},
                                 remove_added_watch_request{text()}};
        multi_request multi;
        for (std::size_t n = random() % 6; n > 0; --n) {
            const std::vector<multi_op> ops{create(), set_request{text(), text()}, remove_request{text()},
                                            check_op{text()}};
            multi.ops.push_back(ops[random() % ops.size()]);
        }
        const std::size_t steps = multi.ops.size();
        all.emplace_back(std::move(multi));
        for (const request& r : all) {
            const std::size_t real = on_the_wire(r).size();
            REQUIRE(encoded_size(r) >= real);
            REQUIRE(encoded_size(r) <= real + 32 + 24 * steps);
        }
    }
}
