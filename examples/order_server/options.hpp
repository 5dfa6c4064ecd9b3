#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace order_server {

struct options {
    std::string servers = "127.0.0.1:2181";  ///< of ZooKeeper
    std::string root = "/order-server";      ///< of all nodes that the instances share
    std::string name;                        ///< of this instance; one at random when it is empty
    std::string store = "orders.sqlite";     ///< the file that the instances share
    std::string address = "127.0.0.1";
    std::uint16_t port = 8080;
    int threads = 4;
    std::size_t connections = 1'000;  ///< at most so many at a time
    std::chrono::milliseconds request_time{10'000};  ///< how long a client may take to send a request
    std::chrono::milliseconds session_timeout{10'000};
    std::chrono::milliseconds bank_time{200};     ///< how long the (simulated) bank takes
    std::chrono::milliseconds settle_every{5'000};
    bool demo = false;  ///< lets the page kill, pause and cancel
};

}  // namespace order_server
