#include "simulation/explored.hpp"

#include "simulation/exploration.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

namespace zkasio::test {
namespace {

using trouble = explored_plan::trouble;

constexpr std::pair<trouble, const char*> all_troubles[] = {
    {trouble::drop_0, "drop 0"},     {trouble::drop_1, "drop 1"},
    {trouble::expire_0, "expire 0"}, {trouble::expire_1, "expire 1"},
    {trouble::delete_first, "delete the first node"}, {trouble::delete_second, "delete the second node"},
};

int number_in(const char* variable, int otherwise) {
    const char* const text = std::getenv(variable);
    return text && *text ? std::atoi(text) : otherwise;
}

bool is_wanted(std::string_view what) {
    const char* const text = std::getenv("ZKASIO_EXPLORE");
    return text && std::string_view(text).find(what) != std::string_view::npos;
}

// Each combination of `n` troubles from the number `from` on.
void combine(int n, std::size_t from, std::vector<trouble>& chosen, const std::function<void()>& each) {
    if (n == 0) return each();
    for (std::size_t i = from; i < std::size(all_troubles); ++i) {
        chosen.push_back(all_troubles[i].first);
        combine(n - 1, i, chosen, each);
        chosen.pop_back();
    }
}

std::string text_of(const explored_plan& p) {
    std::string text = std::to_string(p.users) + " users";
    for (const trouble t : p.troubles) text += std::string(", ") + all_troubles[static_cast<std::size_t>(t)].second;
    return text;
}

}  // namespace

bool explored_plan::has(trouble t) const { return std::find(troubles.begin(), troubles.end(), t) != troubles.end(); }

void make_nodes(simulation& s, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        detail::create_request r;
        r.path = path;
        s.ensemble.operate(r);
    }
}

void begin_exploring(simulation& s, const explored_plan& p, std::function<void(std::size_t n)> delete_node,
                     const std::function<void()>& prepare) {
    if (is_wanted("late")) s.let_users_be_late();
    if (is_wanted("together")) s.let_answers_come_together();
    for (int n = 0; n < 2; ++n) s.spawn(s.add_client().connected());
    s.run();
    prepare();
    s.explore(true);
    for (const trouble t : p.troubles) {
        const auto n = static_cast<int>(t) % 2;
        switch (t) {
            case trouble::drop_0:
            case trouble::drop_1: s.after(0, [&s, n] { s.ensemble.drop_connection(n, 0, 0); }, n); break;
            case trouble::expire_0:
            case trouble::expire_1: s.after(0, [&s, n] { s.ensemble.expire(n); }, n); break;
            case trouble::delete_first:
            case trouble::delete_second:
                s.after(0, [delete_node, n] { delete_node(static_cast<std::size_t>(n)); }, simulation::nobody);
                break;
        }
    }
}

void run_all_schedules(const std::string& name,
                       const std::function<void(simulation&, const explored_plan&)>& scenario) {
    const int seconds = number_in("ZKASIO_EXPLORE_SECONDS", 0);
    exploration_limits most;
    if (const int delays = number_in("ZKASIO_EXPLORE_DELAYS", -1); delays >= 0)
        most.delays = static_cast<std::size_t>(delays);
    if (seconds > 0)
        most.time = std::chrono::seconds(seconds);
    else
        most.schedules = static_cast<std::size_t>(
            number_in("ZKASIO_EXPLORE_SCHEDULES", number_in("ZKASIO_SIM_SEEDS", 300)));
    explored_plan p;
    p.users = number_in("ZKASIO_EXPLORE_USERS", 2);
    std::size_t schedules = 0;
    const char* const only = std::getenv("ZKASIO_EXPLORE_ONLY");
    const auto explore_plan = [&] {
        if (only && text_of(p).find(only) == std::string::npos) return;
        const exploration e = explore([&](simulation& s) { scenario(s, p); }, most);
        INFO(name << ", " << text_of(p) << "\n" << e.log);
        CHECK(e.violated == "");
        CHECK((e.complete || seconds == 0));
        schedules += e.schedules;
        std::cout << name << ", " << text_of(p) << ": " << e.schedules << " schedules of " << e.longest
                  << " steps at most" << (e.complete ? "" : ", AND MORE") << std::endl;
    };
    const int most_faults = number_in("ZKASIO_EXPLORE_FAULTS", 1);
    for (int faults = 0; faults <= most_faults; ++faults) combine(faults, 0, p.troubles, explore_plan);
    std::cout << name << ": " << schedules << " schedules" << std::endl;
}

}  // namespace zkasio::test
