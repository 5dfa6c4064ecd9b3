// zkasio and boost_zkasio in one process use the same C library, whose calls take turns: as long as this program has
// the turn, neither gets one.

#include <boost_zkasio/client.hpp>
#include <zkasio/client.hpp>

#include <boost/asio/io_context.hpp>

#include <asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

// Begins as the one of c_conversions.hpp.
extern "C" {
struct zkasio_c_library_1 {
    std::mutex mutex;
};
zkasio_c_library_1* zkasio_the_c_library_1();
}

namespace {

using namespace std::chrono_literals;

// No server is there.
template <class Loop, class Client, class Options>
void connect(std::atomic<int>& ended) {
    Loop loop;
    const Client zk(loop.get_executor(), Options("127.0.0.1:1"));
    loop.run_for(100ms);
    ++ended;
}

}  // namespace

int main() {
    std::atomic<int> ended = 0;
    std::unique_lock turn(zkasio_the_c_library_1()->mutex);
    std::thread one([&] { connect<asio::io_context, zkasio::client, zkasio::client_options>(ended); });
    std::thread other([&] {
        connect<boost::asio::io_context, boost_zkasio::client, boost_zkasio::client_options>(ended);
    });
    std::this_thread::sleep_for(500ms);
    const int without_turn = ended;
    turn.unlock();
    one.join();
    other.join();
    if (without_turn > 0) std::puts("a library has called the C library without its turn");
    return without_turn > 0 || ended != 2;
}
