#include "tls/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace zkasio::test {
namespace {

void must(bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string("certificates: ") + what);
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const e = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    must(e && ::X509_add_ext(certificate, e, -1) == 1, value.c_str());
    ::X509_EXTENSION_free(e);
}

}  // namespace

void certificate_authority::deleter::operator()(EVP_PKEY* k) const noexcept { ::EVP_PKEY_free(k); }
void certificate_authority::deleter::operator()(X509* c) const noexcept { ::X509_free(c); }

certificate_authority::certificate_ptr certificate_authority::unsigned_certificate(const std::string& name,
                                                                                   EVP_PKEY* key,
                                                                                   std::chrono::seconds ends_in) {
    static long serial = 1;
    certificate_ptr c(::X509_new());
    must(c && key, "no memory");
    ::X509_set_version(c.get(), X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(c.get()), serial++);
    ::X509_gmtime_adj(::X509_getm_notBefore(c.get()), -3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(c.get()), static_cast<long>(ends_in.count()));
    ::X509_set_pubkey(c.get(), key);
    ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(c.get()), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return c;
}

certificate_authority::certificate_authority(const std::string& name) : key_(EVP_RSA_gen(2048)) {
    certificate_ = unsigned_certificate(name, key_.get(), std::chrono::hours(1));
    ::X509_set_issuer_name(certificate_.get(), ::X509_get_subject_name(certificate_.get()));
    extend(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    extend(certificate_.get(), certificate_.get(), NID_subject_key_identifier, "hash");
    must(::X509_sign(certificate_.get(), key_.get(), ::EVP_sha256()) > 0, "not signed");
    write("ca.pem", certificate_.get(), nullptr);
}

certificate_authority::issued certificate_authority::issue(const std::string& common_name, const std::string& names,
                                                           std::chrono::seconds ends_in) const {
    const key_ptr key(EVP_RSA_gen(2048));
    const certificate_ptr c = unsigned_certificate(common_name, key.get(), ends_in);
    ::X509_set_issuer_name(c.get(), ::X509_get_subject_name(certificate_.get()));
    extend(c.get(), certificate_.get(), NID_authority_key_identifier, "keyid");
    if (!names.empty()) extend(c.get(), certificate_.get(), NID_subject_alt_name, names);
    must(::X509_sign(c.get(), key_.get(), ::EVP_sha256()) > 0, "not signed");
    const std::string number = std::to_string(++count_);
    write(number + ".pem", c.get(), nullptr);
    write(number + ".key", nullptr, key.get());
    write(number + "-both.pem", c.get(), key.get());
    return {files_ / (number + ".pem"), files_ / (number + ".key"), files_ / (number + "-both.pem")};
}

void certificate_authority::lock(const std::string& key_file, const std::string& password) {
    BIO* const in = ::BIO_new_file(key_file.c_str(), "r");
    must(in != nullptr, "cannot read");
    const key_ptr key(::PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr));
    ::BIO_free(in);
    BIO* const out = ::BIO_new_file(key_file.c_str(), "w");
    must(out && key, "cannot write");
    ::PEM_write_bio_PKCS8PrivateKey(out, key.get(), ::EVP_aes_256_cbc(), password.data(),
                                    static_cast<int>(password.size()), nullptr, nullptr);
    ::BIO_free(out);
}

void certificate_authority::write(const std::string& file, X509* certificate, EVP_PKEY* key) const {
    BIO* const out = ::BIO_new_file((files_ / file).c_str(), "w");
    must(out != nullptr, "cannot write");
    if (key) ::PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    if (certificate) ::PEM_write_bio_X509(out, certificate);
    ::BIO_free(out);
}

}  // namespace zkasio::test
