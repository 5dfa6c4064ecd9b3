// As tokens_list_test.cpp, of what is built only where JSON is.
#include "unit/support/awaitable_members.hpp"
#include "unit/support/token_list.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>

#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

void list_discovery(token_list& all) {
    all.compiles<registry>("registry.hpp announce", [](auto& r) { return r.announce(service_instance("s")); });
    all.compiles<registry>("registry.hpp names", [](auto& r) { return r.names(); });
    all.compiles<registry>("registry.hpp instances", [](auto& r) { return r.instances("s"); });
    all.compiles<registry>("registry.hpp instance", [](auto& r) { return r.instance("s", "i"); });
    all.compiles<announcement>("registry.hpp update", [](auto& a) { return a.update(service_instance("s")); });
    all.compiles<announcement>("registry.hpp withdraw", [](auto& a) { return a.withdraw(); });
    all.compiles<announcement>("registry.hpp ended", [](auto& a) { return a.ended(); });
    all.compiles<provider>("provider.hpp pick", [](auto& p) { return p.pick(); });
    all.compiles<provider>("provider.hpp pick_for", [](auto& p) { return p.pick_for("key"); });
    all.compiles<provider>("provider.hpp ready", [](auto& p) { return p.ready(); });
    all.compiles<provider>("provider.hpp changed", [](auto& p) { return p.changed(p.view()); });
    all.compiles<provider>("provider.hpp close", [](auto& p) { return p.close(); });
}

}  // namespace

TEST_CASE("tokens: those of discovery, too", "[tokens][leaves]") {
    token_list all;
    list_discovery(all);
    check_tokens<announcement>(all);
    for (const std::string& name : public_awaitable_members("discovery")) {
        INFO(name);
        CHECK(all.has(name));
    }
}
