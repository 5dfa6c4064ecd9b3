// What zkasio::async() refuses: a line that is marked fails, with words that say what to do.
#include <zkasio/coroutines/async.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>

#include <system_error>

using namespace zkasio;

struct no_default {
    explicit no_default(int n) : number(n) {}
    int number;
};

asio::awaitable<int> number();
asio::awaitable<no_default> another();

void all(asio::any_io_executor on) {
    async(number(), asio::bind_executor(on, [](std::error_code, int) {}));
    async(on, number(), [](std::error_code, int) {});
    async(number(), [](std::error_code, int) {});              // refused
    async(on, another(), [](std::error_code, no_default) {});  // refused
}
