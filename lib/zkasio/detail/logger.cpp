#include <zkasio/detail/logger.hpp>

#include <asio/post.hpp>

#include <exception>
#include <string>

namespace zkasio::detail {

logger::logger(strand_type strand, const client_options::log_sink& sink)
    : strand_(std::move(strand)), sink_(sink ? std::make_shared<const client_options::log_sink>(sink) : nullptr) {}

// The sink is a user's: it is called by itself, not in the middle of what is being logged. What it throws is nobody's.
void logger::line(std::string_view text) const noexcept {
    if (!sink_) return;
    try {
        asio::post(strand_, [sink = sink_, line = std::string(text)] {
            try {
                (*sink)(line);
            } catch (...) {
            }
        });
    } catch (...) {  // no memory
    }
}

void logger::call(const std::function<void()>& f) const noexcept {
    try {
        f();
    } catch (const std::exception& e) {
        line(std::string("a callback has thrown: ") + e.what());
    } catch (...) {
        line("a callback has thrown");
    }
}

}  // namespace zkasio::detail
