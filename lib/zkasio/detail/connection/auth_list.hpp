#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// The credentials that this client presents on every connection.
class auth_list {
public:
    explicit auth_list(std::vector<auth_info> known) : known_(std::move(known)) {}

    /// A server has accepted the credential: it is presented on later connections, too.
    void accepted(auth_info who) {
        if (!knows(who)) known_.push_back(std::move(who));
    }
    bool knows(const auth_info& who) const { return std::find(known_.begin(), known_.end(), who) != known_.end(); }

    /// The credentials as a backend presents them.
    std::vector<add_auth_request> requests() const {
        std::vector<add_auth_request> all;
        for (const auth_info& a : known_) all.push_back({a.scheme(), a.credential()});
        return all;
    }

    /// "digest, x509": the schemes of the credentials, each once.
    std::string schemes() const {
        std::set<std::string> all;
        for (const auth_info& a : known_) all.insert(a.scheme());
        std::string text;
        for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
        return text;
    }

    /// How many credentials were given to the backend by client::add_auth() and are not known to be accepted. The
    /// library presents all of them on each connection, also those whose caller has left before an answer: these stay
    /// counted until the session ends. A refusal of one of the options' credentials is then taken for one of theirs,
    /// which costs the servers one session more before the client is in session_state::auth_failed.
    int unconfirmed = 0;

private:
    std::vector<auth_info> known_;
};

}  // namespace zkasio::detail
