// The part of c_backend that sends requests through the library.

#include <zkasio/detail/connection/c_backend.hpp>
#include <zkasio/detail/connection/request_numbers.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <string>
#include <utility>

namespace zkasio::detail {

// The descriptor's number is the library's only while the library is connected: after that, any other part of the
// process may have got the number.
void c_backend::cork(bool on) {
    if (corked_ == on || fd_ < 0 || tunnel_ || !connected()) return;
    const int value = on;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
    corked_ = on;
}

void c_backend::begin_batch() {
    in_batch_ = true;
    if (usable()) cork(true);
}

void c_backend::end_batch() {
    in_batch_ = false;
    if (usable()) cork(false);
    send_through_tunnel();
    report();
}

std::error_code c_backend::submit(op_id id, const request& r) {
    if (!zh_) return errc::client_closed;
    if (made_here_.forked()) return errc::forked;
    if (is_over()) return errc::session_expired;  // fact 16: zoo_amulti would crash
    // An earlier submit() has lost the connection, and this was not reported yet. The library would take this request,
    // and keep it for the next connection.
    const std::error_code not_now = std::make_error_code(std::errc::resource_unavailable_try_again);
    if (!connected()) return not_now;
    if (!unsent_.empty() && !finish_own_frame()) return not_now;
    const std::int32_t number = known_requests::number_of(r);
    const bool is_unknown = number != known_requests::opcode::none && lacks(number);
    const bool reads_stat = is_unknown && number == known_requests::opcode::create_with_stat;
    if (is_unknown && !reads_stat) return zk_errc::unimplemented;
    if (is_own(r)) return submit_own(id, r);
    if (const auto* auth = std::get_if<add_auth_request>(&r); auth && !auth->known) {
        // The library puts a credential at the front of its queue, also in front of the rest of a half-sent request.
        int fd = -1, events = 0;
        timeval tv{};
        library_interest(fd, events, tv);
        if ((events & ZOOKEEPER_WRITE) || !connected()) return not_now;
    }
    std::error_code code;
    int send_failure = 0;
    {
        const library_call guard(*this);
        step_over_reserved_numbers(zh_);
        errno = 0;
        if (reads_stat)
            code = send_without_stat(id, std::get<create_request>(r));
        else
            code = std::visit(
                [&]<class Row>(const Row& row) -> std::error_code {
                    if constexpr (requires { Row::opcode; })
                        return {};
                    else
                        return send(id, row);
                },
                r);
        send_failure = errno;
    }
    if (!code) ++outstanding_;
    const bool is_doubtful = number != known_requests::opcode::none && !is_unknown && !answered_here_.contains(number);
    if (!code && is_doubtful) doubtful_.emplace_back(id, number);
    if (!in_batch_) send_through_tunnel();
    if (zoo_state(zh_) == ZOO_NOTCONNECTED_STATE) {
        const bool closed = send_failure == EPIPE || send_failure == 0;
        const bool told = tunnel_ && !tunnel_->failure().empty();
        fail(server_ + ": " +
             (told     ? tunnel_->failure()
              : closed ? std::string("closed by the server")
                       : std::generic_category().message(send_failure)));
    }
    cure_poison();
    return code;
}

std::error_code c_backend::send(op_id id, const create_request& r) {
    c_acl acl(r.acl);
    const auto length = static_cast<int>(r.data.size());
    if (has_ttl(r.mode))
        return to_code(zoo_acreate2_ttl(zh_, r.path.c_str(), r.data.data(), length, acl.get(), to_flags(r.mode),
                                        r.ttl.count(), &sink::on_string_stat, as_data(id)));
    return to_code(zoo_acreate2(zh_, r.path.c_str(), r.data.data(), length, acl.get(), to_flags(r.mode),
                                &sink::on_string_stat, as_data(id)));
}
std::error_code c_backend::send_without_stat(op_id id, const create_request& r) {
    c_acl acl(r.acl);
    const int rc = zoo_acreate(zh_, r.path.c_str(), r.data.data(), static_cast<int>(r.data.size()), acl.get(),
                               to_flags(r.mode), &sink::on_created, as_data(id));
    if (rc == ZOK) without_stat_.emplace(id, r.mode);
    return to_code(rc);
}
std::error_code c_backend::send(op_id id, const remove_request& r) {
    return to_code(zoo_adelete(zh_, r.path.c_str(), r.version, &sink::on_void, as_data(id)));
}
std::error_code c_backend::send(op_id id, const set_request& r) {
    return to_code(zoo_aset(zh_, r.path.c_str(), r.data.data(), static_cast<int>(r.data.size()), r.version,
                            &sink::on_stat, as_data(id)));
}
std::error_code c_backend::send(op_id id, const exists_request& r) {
    return to_code(zoo_awexists(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this, &sink::on_stat,
                                as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_request& r) {
    return to_code(
        zoo_awget(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this, &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const children_request& r) {
    return to_code(zoo_awget_children2(zh_, r.path.c_str(), r.watch ? &sink::on_watch : nullptr, this,
                                       &sink::on_strings, as_data(id)));
}
std::error_code c_backend::send(op_id id, const sync_request& r) {
    return to_code(zoo_async(zh_, r.path.c_str(), &sink::on_string, as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_acl_request& r) {
    return to_code(zoo_aget_acl(zh_, r.path.c_str(), &sink::on_acl, as_data(id)));
}
std::error_code c_backend::send(op_id id, const set_acl_request& r) {
    c_acl acl(r.acl);
    return to_code(zoo_aset_acl(zh_, r.path.c_str(), r.version, acl.get(), &sink::on_void, as_data(id)));
}
std::error_code c_backend::send(op_id id, const get_config_request& r) {
    return to_code(zoo_awgetconfig(zh_, r.watch ? &sink::on_watch : nullptr, this, &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const reconfig_request& r) {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    return to_code(zoo_areconfig(zh_, text(r.joining), text(r.leaving), text(r.members), r.from_version,
                                 &sink::on_data, as_data(id)));
}
std::error_code c_backend::send(op_id id, const add_auth_request& r) {
    // The library completes all added credentials with the first answer to one of them. A server answers in order and
    // hangs up after a refusal. So the answer to a request behind the credential says that the credential was accepted.
    if (!r.known) {
        has_credentials_ = true;
        watch_for_refusal();
        const int rc = zoo_add_auth(zh_, r.scheme.c_str(), r.credential.data(), static_cast<int>(r.credential.size()),
                                    nullptr, nullptr);
        if (rc != ZOK) return to_code(rc);
    }
    return to_code(zoo_awexists(zh_, "/", nullptr, nullptr, &sink::on_auth, as_data(id)));
}
std::error_code c_backend::send(op_id id, const remove_watch_request& r) {
    // Fact 19: the completion argument is the function itself, cast to a pointer to a function pointer.
    return to_code(zoo_aremove_all_watches(
        zh_, r.path.c_str(), r.kind == watch_kind::children ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA, 0,
        reinterpret_cast<void_completion_t*>(&sink::on_void), as_data(id)));
}

std::error_code c_backend::send(op_id id, const multi_request& r) {
    const std::size_t n = r.ops.size();
    for (const multi_op& op : r.ops) {  // fact 16: the library would end the process
        const auto* c = std::get_if<create_request>(&op);
        if (c && (c->mode == create_mode::container || has_ttl(c->mode))) return zk_errc::unimplemented;
        const std::string_view path = std::visit([](const auto& step) { return std::string_view(step.path); }, op);
        const bool good =
            c && is_sequential(c->mode) ? path_problem(c->path + '0').empty() : path_problem(path).empty();
        if (!good) return zk_errc::bad_arguments;
    }

    auto call = std::make_unique<multi_call>();
    call->ops.resize(n);
    call->results.resize(n);
    call->created_paths.resize(n);
    call->stats.resize(n);
    call->acls.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        if (const auto* c = std::get_if<create_request>(&r.ops[i])) {
            call->created_paths[i].resize(c->path.size() + 16);
            call->acls.emplace_back(c->acl);
            zoo_create_op_init(&call->ops[i], c->path.c_str(), c->data.data(), static_cast<int>(c->data.size()),
                               call->acls.back().get(), to_flags(c->mode), call->created_paths[i].data(),
                               static_cast<int>(call->created_paths[i].size()));
        } else if (const auto* s = std::get_if<set_request>(&r.ops[i])) {
            zoo_set_op_init(&call->ops[i], s->path.c_str(), s->data.data(), static_cast<int>(s->data.size()),
                            s->version, &call->stats[i]);
        } else if (const auto* d = std::get_if<remove_request>(&r.ops[i])) {
            zoo_delete_op_init(&call->ops[i], d->path.c_str(), d->version);
        } else if (const auto* k = std::get_if<check_op>(&r.ops[i])) {
            zoo_check_op_init(&call->ops[i], k->path.c_str(), k->version);
        }
    }
    // Kept before the call: the library has the addresses from then on.
    const auto kept = multis_.emplace(id, std::move(call)).first;
    const multi_call& c = *kept->second;
    const int rc = zoo_amulti(zh_, static_cast<int>(n), c.ops.data(), kept->second->results.data(), &sink::on_multi,
                              as_data(id));
    if (rc != ZOK) multis_.erase(kept);
    return to_code(rc);
}

void c_backend::forget_watch(const std::string& path, watch_kind kind) {
    if (!zh_ || made_here_.forked()) return;
    const library_call guard(*this);
    zoo_aremove_all_watches(zh_, path.c_str(), kind == watch_kind::children ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA, 1,
                            reinterpret_cast<void_completion_t*>(&sink::on_void), nullptr);
}

}  // namespace zkasio::detail
