#include <zkasio/testing/network.hpp>

namespace zkasio::testing {

network::network(const ensemble& servers) {
    for (int i = 0; i < servers.size(); ++i) {
        proxies_.push_back(std::make_unique<proxy>(servers.endpoint(i)));
        connect_string_ += (i ? "," : "") + proxies_.back()->address();
    }
}

void network::cut_off(int server) const {
    to(server).refuse(true);
    to(server).cut_all();
}

void network::cut_off_all() const {
    for (int i = 0; i < size(); ++i) cut_off(i);
}

void network::heal() const {
    for (const auto& each : proxies_) each->refuse(false);
}

}  // namespace zkasio::testing
