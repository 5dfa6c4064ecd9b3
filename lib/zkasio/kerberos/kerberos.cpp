#include <zkasio/kerberos/kerberos.hpp>

#include <zkasio/error.hpp>
#include <zkasio/kerberos/detail/gss_context.hpp>

#include <asio/awaitable.hpp>

#include <utility>

namespace zkasio {
namespace {

class kerberos_conversation final : public sasl_conversation {
public:
    explicit kerberos_conversation(const std::string& principal) : context_(principal) {}

    asio::awaitable<sasl_step> step(std::string challenge) override {
        if (!context_.is_established()) co_return sasl_step::send(context_.go_on(challenge));
        const std::string offered = context_.unwrap(challenge);
        co_return sasl_step::send_last(context_.wrap(detail::chosen_layer(offered)));
    }

private:
    detail::gss_context context_;
};

class kerberos_mechanism final : public sasl_mechanism {
public:
    kerberos_mechanism(asio::any_io_executor where, kerberos_options o)
        : where_(std::move(where)), options_(std::move(o)) {
        if (!where_) throw error(errc::invalid_argument, "kerberos", {}, "there is no executor for calls that block");
        if (options_.service().empty()) throw error(errc::invalid_argument, "kerberos", {}, "the service is empty");
    }
    asio::any_io_executor executor() const override { return where_; }
    std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const override {
        const std::string host = options_.host() ? options_.host()(with) : with.host();
        return std::make_unique<kerberos_conversation>(options_.service() + '/' + host);
    }

private:
    asio::any_io_executor where_;
    kerberos_options options_;
};

}  // namespace

std::shared_ptr<const sasl_mechanism> kerberos(asio::any_io_executor blocking, kerberos_options options) {
    return std::make_shared<kerberos_mechanism>(std::move(blocking), std::move(options));
}

}  // namespace zkasio
