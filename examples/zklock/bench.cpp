#include "commands.hpp"
namespace zklock {
asio::awaitable<int> bench(session, bench_options, connection_options) { co_return 0; }
}
