#pragma once

#include <zkasio/detail/client/await.hpp>
#include <zkasio/operations.hpp>

#include <asio/awaitable.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// The coroutines behind the members of `operations`, which are no coroutines: their awaitables may outlive the handle,
/// so each coroutine has a copy of it. operations.cpp: single requests; operations_create.cpp, operations_remove.cpp:
/// operations of several requests.
struct operations::impl {
    /// Binds the command to the session that `on` is bound to, and puts the client's ACL where default_acl() stands for
    /// it, and the root of a view in front of the paths. Throws for a request that makes no sense.
    /// @param operation the name in messages; "": the request's name. @param checks see detail::validate().
    static void prepare(const operations& on, detail::command& c, std::string_view operation = {},
                        std::size_t checks = 0);
    static detail::command prepared(const operations& on, detail::request what);
    /// As prepare(), for a request that is known to be valid, and has whole paths.
    static void bind(const operations& on, detail::command& c);

    /// As throw_if_failed(), under the name and with the path of reply::asked.
    static void throw_failure(const operations& on, const detail::reply& r);

    /// Sends one request, and turns its reply into a result. A read is sent again if the connection was lost while the
    /// read was under way.
    /// @param expected a code that is no failure.
    template <class Request, class Taken>
    static asio::awaitable<Taken> ask(const operations& on, Request what, Taken (*take)(detail::reply&&),
                                      std::error_code expected = {});
    /// As ask(), and returns the watch that the request sets, too.
    template <class Request, class Taken>
    static asio::awaitable<watched<Taken>> ask_and_watch(const operations& on, Request what,
                                                         Taken (*take)(detail::reply&&),
                                                         std::error_code expected = {});
    /// The coroutine of ask() and ask_and_watch(). @tparam Result Taken, or watched<Taken>.
    template <class Result, class Taken>
    static asio::awaitable<Result> answer(operations on, detail::command c, Taken (*take)(detail::reply&&));

    /// Sends one request whose reply is kept.
    static detail::kept_reply_ptr start(const operations& on, detail::command c,
                                        detail::request_table::repeat r = detail::request_table::repeat::never);

    static asio::awaitable<std::vector<std::string>> ephemerals_of_view(operations on, std::string prefix);

    // watch_stream.cpp
    static asio::awaitable<watch_stream> add_watch(operations on, std::string path, watch_mode mode);

    static asio::awaitable<std::vector<step_result>> multi(operations on, std::vector<std::string> checked,
                                                           transaction steps, std::string operation);
    static asio::awaitable<created> create(operations on, std::string path, bytes data, create_options options);
    static asio::awaitable<std::optional<created>> create_unless_exists(operations on, std::string path, bytes data,
                                                                        create_options options);
    static asio::awaitable<node_stat> create_or_set(operations on, std::string path, bytes data,
                                                    create_options options);
    static asio::awaitable<void> remove_recursive(operations on, std::string path);
    /// See toolbox.
    static detail::kept_reply_ptr ensure_removed(const operations& on, std::string path,
                                                 std::vector<std::string> must_exist = {});
    static void ensure_protected_removed(const operations& on, std::string parent, std::string id);
    static void run_in_background(const operations& on, asio::awaitable<void> task);
    static asio::awaitable<std::optional<created>> find_protected(operations on, std::string parent,
                                                                  std::string protection_id);
    static asio::awaitable<std::multimap<std::string, std::string>> find_all_protected(operations on,
                                                                                       std::string parent,
                                                                                       std::vector<std::string> ids);

    // operations_create.cpp
    static asio::awaitable<void> create_parents(operations on, std::string path, create_options options);
    static asio::awaitable<void> create_with_parents(operations on, std::string path, create_options options,
                                                     detail::command& c, detail::reply& r);
    static asio::awaitable<created> create_protected(operations on, std::string path, std::string data,
                                                     create_options options);
    static asio::awaitable<void> remove_protected(operations on, std::string parent, std::string id);
    static bool of_this_session(const operations& on, const node_stat& s);
    static asio::awaitable<std::optional<node_stat>> certain_stat(operations on, std::string path);

    // operations_remove.cpp
    struct tree;
    static asio::awaitable<tree> list_tree(operations on, std::string root);
    static asio::awaitable<std::optional<node_children>> certain_children(operations on, std::string path,
                                                                          detail::kept_reply_ptr asked);
    static asio::awaitable<std::vector<std::string>> remove_together(operations on, std::vector<std::string> paths);
    static asio::awaitable<bool> remove_singly(operations on, std::vector<std::string> paths);
};

}  // namespace zkasio
