#include <zkasio/detail/telemetry/logger.hpp>

#include <asio/post.hpp>

#include <exception>
#include <new>
#include <string>

namespace zkasio::detail {

logger::logger(strand_type strand, const client_options::log_sink& sink, log_level least)
    : strand_(std::move(strand)),
      sink_(sink ? std::make_shared<const client_options::log_sink>(sink) : nullptr),
      least_(least) {}

// The sink is a user's function: called in a turn of its own, not in the middle of a change. Exceptions are dropped.
void logger::log(log_level level, std::string_view text, const std::vector<log_field>& fields) const noexcept {
    if (!sink_ || level < least_) return;
    asio::post(strand_, [sink = sink_, record = log_record(level, text, fields)] {
        try {
            (*sink)(record);
        } catch (...) {
        }
    });
}

void logger::call(const std::function<void()>& f) const noexcept {
    try {
        f();
    } catch (const std::bad_alloc&) {
        std::terminate();
    } catch (const std::exception& e) {
        error(std::string("a callback has thrown: ") + e.what());
    } catch (...) {
        error("a callback has thrown");
    }
}

}  // namespace zkasio::detail
