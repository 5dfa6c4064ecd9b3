#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace order_server {

/// JSON as text; what is no UTF-8 in it, as data of nodes need not be, as U+FFFD.
inline std::string text_of(const nlohmann::json& j) {
    return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What a request is answered with.
class reply {
public:
    explicit reply(int status, const nlohmann::json& body) : reply(status, "application/json", text_of(body)) {}
    reply(int status, std::string type, std::string body)
        : status_(status), type_(std::move(type)), body_(std::move(body)) {}

    /// Lets a page of this origin read it, too; "": none.
    reply& allow(std::string origin) {
        origin_ = std::move(origin);
        return *this;
    }

    int status() const noexcept { return status_; }
    const std::string& type() const noexcept { return type_; }
    const std::string& body() const noexcept { return body_; }
    const std::string& origin() const noexcept { return origin_; }

private:
    int status_;
    std::string type_, body_, origin_;
};

inline reply failure(int status, std::string why) {
    nlohmann::json body;
    body["error"] = std::move(why);
    return reply(status, body);
}

}  // namespace order_server
