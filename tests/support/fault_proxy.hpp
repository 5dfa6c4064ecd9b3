#pragma once

#include "support/surroundings.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio::test {

/// A bad network in front of a server, as testing::proxy is one: for the clients of address().
class fault_proxy {
public:
    using end = testing::proxy::end;
    using plan = testing::proxy::plan;
    static constexpr std::size_t never = testing::proxy::never;

    explicit fault_proxy(const std::string& server) : network_(surroundings::current().make_network(server)) {}

    std::string address() const { return network_->address(); }
    void plan_connections(std::function<plan(std::size_t)> planner) { network_->plan_connections(std::move(planner)); }
    void cut_all(end how = end::rst) { network_->cut_all(how); }
    void refuse(bool on) { network_->refuse(on); }
    void silence(bool on) { network_->silence(on); }
    void delay(std::chrono::milliseconds each_way) { network_->delay(each_way); }
    std::size_t connections() const { return network_->connections(); }

private:
    std::unique_ptr<faulty_network> network_;
};

}  // namespace zkasio::test
