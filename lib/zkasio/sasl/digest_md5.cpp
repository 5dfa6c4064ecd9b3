#include <zkasio/sasl/digest_md5.hpp>

#include <zkasio/error.hpp>
#include <zkasio/sasl/detail/digest_response.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <stdexcept>
#include <utility>

namespace zkasio {
namespace {

class digest_conversation final : public sasl_conversation {
public:
    digest_conversation(std::string user, std::string password)
        : user_(std::move(user)), password_(std::move(password)) {}
    ~digest_conversation() override { detail::wipe(password_); }

    // The server speaks first.
    asio::awaitable<sasl_step> step(std::string challenge) override {
        if (!std::exchange(has_begun_, true)) co_return sasl_step::send("");
        if (!response_) {
            const detail::digest_challenge asked = detail::parse_digest_challenge(challenge);
            response_.emplace(asked, user_, password_, detail::random_nonce());
            detail::wipe(password_);
            co_return sasl_step::send(response_->token());
        }
        if (!response_->is_proved_by(challenge))
            throw std::runtime_error("DIGEST-MD5: the server has not proved that it knows the password");
        co_return sasl_step::done();
    }

private:
    std::string user_, password_;
    std::optional<detail::digest_response> response_;
    bool has_begun_ = false;
};

class digest_mechanism final : public sasl_mechanism {
public:
    digest_mechanism(std::string user, std::function<std::string()> password, asio::any_io_executor where)
        : user_(std::move(user)), password_(std::move(password)), where_(std::move(where)) {
        if (user_.empty() || user_.find('\0') != std::string::npos)
            throw error(errc::invalid_argument, "digest_md5", {}, "the user is empty, or has a NUL");
        if (!password_) throw error(errc::invalid_argument, "digest_md5", {}, "there is no function for the password");
    }
    asio::any_io_executor executor() const override { return where_; }
    std::unique_ptr<sasl_conversation> begin(const sasl_server&) const override {
        return std::make_unique<digest_conversation>(user_, password_());
    }

private:
    std::string user_;
    std::function<std::string()> password_;
    asio::any_io_executor where_;
};

}  // namespace

std::shared_ptr<const sasl_mechanism> digest_md5(std::string user, std::string password) {
    return digest_md5(std::move(user), [password = std::move(password)] { return password; });
}

std::shared_ptr<const sasl_mechanism> digest_md5(std::string user, std::function<std::string()> password,
                                                 asio::any_io_executor where) {
    return std::make_shared<digest_mechanism>(std::move(user), std::move(password), std::move(where));
}

}  // namespace zkasio
