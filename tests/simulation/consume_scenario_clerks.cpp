// Those who look at a queue, and put dead items back.

#include "simulation/consume_scenario.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

asio::awaitable<void> consume_scenario::keep_books(std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(60));
        const int client = some_client();
        if (s_.chance(30))
            co_await perhaps_cancelled(client, look(queue_of(client)), std::make_shared<outcome>(), 20);
        else
            co_await revive(client);
    }
    --working_;
}

asio::awaitable<void> consume_scenario::look(work_queue q) {
    const work_queue_info n = co_await q.info();
    if (n.oldest && *n.oldest < std::chrono::milliseconds(0))
        throw violation("an item has waited for less than no time");
    const std::vector<dead_item> dead = co_await q.dead();
    for (const dead_item& d : dead) item_checker::id_in(d.item);
}

asio::awaitable<void> consume_scenario::revive(int client) {
    const std::vector<std::string> names = s_.children(at_.dead);
    if (names.empty()) co_return;
    const std::string name = names[s_.pick(names.size())];
    const std::string id = item_checker::id_in(s_.ensemble.tree().find(at_.dead + '/' + name)->data);
    s_.note("revive ", id);
    checker_->revives(id);
    const auto o = std::make_shared<outcome>();
    co_await perhaps_cancelled(client, revive_one(queue_of(client), name, o), o, 20);
    if (o->told || o->unknown) checker_->revived(id, o->told);
    s_.note("revive ", id, o->told ? (*o->told ? ": done" : ": not dead") : ": failed");
}

asio::awaitable<void> consume_scenario::revive_one(work_queue q, std::string name, std::shared_ptr<outcome> o) {
    const bool done = co_await q.revive(name);
    o->told = done;
}

}  // namespace zkasio::test
