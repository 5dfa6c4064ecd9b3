#include <zkasio/detail/connection/name_resolver.hpp>

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

namespace zkasio::detail {

bool is_numeric(const std::string& host) {
    std::error_code is_name;
    asio::ip::make_address(host, is_name);
    return !is_name;
}

void name_resolver::cancel() {
    current_.reset();
    if (resolver_) resolver_->cancel();
}

void name_resolver::arrived(const std::shared_ptr<round>& r) {
    assert(r->pending > 0);
    if (--r->pending > 0 || current_ != r) return;
    current_.reset();
    r->done(std::move(r->servers), std::move(r->failure));
}

void name_resolver::round::add(server_address s) {
    if (std::find(servers.begin(), servers.end(), s) == servers.end()) servers.push_back(std::move(s));
}

void name_resolver::resolve(std::shared_ptr<void> keep_alive, const std::vector<host_port>& hosts, on_resolved done) {
    if (current_ && current_->hosts == hosts) return;
    cancel();
    const auto r = current_ = std::make_shared<round>();
    r->hosts = hosts;
    r->done = std::move(done);
    for (const host_port& h : hosts) {
        if (is_numeric(h.host)) {
            const std::string address = asio::ip::make_address(h.host).to_string();
            r->add({address, address, h.port});
        } else {
            look_up(keep_alive, r, h);
        }
    }
    arrived(r);
}

void name_resolver::look_up(std::shared_ptr<void> keep_alive, const std::shared_ptr<round>& r, const host_port& h) {
    const auto failed = [r, host = h.host](const std::string& why) {
        r->failure += (r->failure.empty() ? "" : ", ") + host + ": " + why;
    };
    auto found = [this, keep_alive, r, failed, host = h.host](std::error_code code,
                                                              const asio::ip::tcp::resolver::results_type& all) {
        if (code) failed(code.message());
        for (const auto& entry : all) r->add({host, entry.endpoint().address().to_string(), entry.endpoint().port()});
        arrived(r);
    };
    ++r->pending;
    try {
        if (!resolver_) resolver_ = std::make_unique<asio::ip::tcp::resolver>(strand_);
        resolver_->async_resolve(h.host, std::to_string(h.port), asio::ip::resolver_base::numeric_service,
                                 std::move(found));
    } catch (const std::exception& e) {  // no thread for the resolver, or no memory
        --r->pending;
        failed(e.what());
    }
}

}  // namespace zkasio::detail
