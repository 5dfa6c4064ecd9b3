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
    if (timer_) timer_->cancel();
}

std::vector<server_address> name_resolver::known(const round& r) const {
    std::vector<server_address> all;
    for (const answer& a : r.answers) {
        const auto before =
            std::find_if(last_.begin(), last_.end(), [&](const answer& one) { return one.asked == a.asked; });
        const answer& from = a.pending && before != last_.end() ? *before : a;
        for (const server_address& s : from.servers)
            if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
    }
    return all;
}

void name_resolver::arrived(const std::shared_ptr<round>& r) {
    assert(r->pending > 0);
    if (--r->pending > 0) {
        if (current_ != r || !r->late) return;
        if (std::vector<server_address> servers = known(*r); !servers.empty()) r->done(std::move(servers), {});
        return;
    }
    if (current_ != r) return;
    current_.reset();
    if (timer_) timer_->cancel();
    std::vector<server_address> servers = known(*r);
    last_ = std::move(r->answers);
    r->done(std::move(servers), std::move(r->failure));
}

void name_resolver::resolve(std::shared_ptr<void> keep_alive, const std::vector<host_port>& hosts, on_resolved done) {
    if (current_ && current_->hosts == hosts) return;
    cancel();
    const auto r = std::make_shared<round>();
    r->hosts = hosts;
    r->done = std::move(done);
    for (const host_port& h : hosts) r->answers.push_back({h, false, {}});
    current_ = r;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        const host_port& h = hosts[i];
        if (is_numeric(h.host)) {
            const std::string address = asio::ip::make_address(h.host).to_string();
            r->answers[i].servers.push_back({address, address, h.port});
        } else {
            look_up(keep_alive, r, i);
        }
    }
    if (r->pending > 1) wait(std::move(keep_alive), r);
    arrived(r);
}

// One name whose look-up hangs must not keep the servers of the others unused.
void name_resolver::wait(std::shared_ptr<void> keep_alive, const std::shared_ptr<round>& r) {
    auto over = [this, keep_alive = std::move(keep_alive), r](std::error_code cancelled) {
        if (cancelled || current_ != r) return;
        r->late = true;
        if (std::vector<server_address> servers = known(*r); !servers.empty()) r->done(std::move(servers), {});
    };
    if (!timer_) timer_ = std::make_unique<asio::steady_timer>(strand_);
    timer_->expires_after(patience);
    timer_->async_wait(std::move(over));
}

void name_resolver::look_up(std::shared_ptr<void> keep_alive, const std::shared_ptr<round>& r, std::size_t at) {
    const host_port& h = r->hosts[at];
    const auto failed = [r, host = h.host](const std::string& why) {
        r->failure += (r->failure.empty() ? "" : ", ") + host + ": " + why;
    };
    auto found = [this, keep_alive, r, failed, at](std::error_code code,
                                                   const asio::ip::tcp::resolver::results_type& all) {
        answer& a = r->answers[at];
        a.pending = false;
        if (code) failed(code.message());
        for (const auto& entry : all)
            a.servers.push_back({a.asked.host, entry.endpoint().address().to_string(), entry.endpoint().port()});
        arrived(r);
    };
    ++r->pending;
    r->answers[at].pending = true;
    try {
        if (!resolver_) resolver_ = std::make_unique<asio::ip::tcp::resolver>(strand_);
        resolver_->async_resolve(h.host, std::to_string(h.port), asio::ip::resolver_base::numeric_service,
                                 std::move(found));
    } catch (const std::exception& e) {  // no thread for the resolver
        --r->pending;
        r->answers[at].pending = false;
        failed(e.what());
    }
}

}  // namespace zkasio::detail
