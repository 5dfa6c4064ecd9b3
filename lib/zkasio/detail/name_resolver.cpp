#include <zkasio/detail/name_resolver.hpp>

#include <algorithm>

namespace zkasio::detail {

void name_resolver::cancel() {
    current_.reset();
    if (resolver_) resolver_->cancel();
}

void name_resolver::arrived(const std::shared_ptr<round>& r) {
    if (--r->pending > 0 || current_ != r) return;
    current_.reset();
    r->done(std::move(r->servers), std::move(r->failure));
}

void name_resolver::resolve(std::shared_ptr<void> keep_alive, const std::vector<host_port>& hosts, on_resolved done) {
    if (current_ && current_->hosts == hosts) return;
    cancel();
    const auto r = current_ = std::make_shared<round>();
    r->hosts = hosts;
    r->done = std::move(done);
    for (const host_port& h : hosts) {
        std::error_code not_numeric;
        const auto address = asio::ip::make_address(h.host, not_numeric);
        if (!not_numeric) {
            r->servers.push_back(numeric_server(address.to_string(), h.port));
            continue;
        }
        if (!resolver_) resolver_ = std::make_unique<asio::ip::tcp::resolver>(strand_);
        ++r->pending;
        resolver_->async_resolve(
            h.host, std::to_string(h.port), asio::ip::resolver_base::numeric_service,
            [this, keep_alive, r, host = h.host](std::error_code code, const asio::ip::tcp::resolver::results_type& found) {
                if (code) r->failure += (r->failure.empty() ? "" : ", ") + host + ": " + code.message();
                for (const auto& entry : found) {
                    auto server = numeric_server(entry.endpoint().address().to_string(), entry.endpoint().port());
                    if (std::find(r->servers.begin(), r->servers.end(), server) == r->servers.end())
                        r->servers.push_back(std::move(server));
                }
                arrived(r);
            });
    }
    arrived(r);
}

}  // namespace zkasio::detail
