// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/openssl.h"

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace rocegw::identity {
namespace {

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return {data, static_cast<size_t>(size)};
}

// Refuses encrypted keys: no password is asked for.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

Status OpensslError(const std::string& what) {
  std::string text = what;
  if (const unsigned long code = ERR_get_error(); code != 0) {
    const char* const reason = ERR_reason_error_string(code);
    if (reason != nullptr) text += std::string(": ") + reason;
  }
  ERR_clear_error();
  return {EINVAL, std::move(text)};
}

StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("cannot make a key");
  return key;
}

StatusOr<std::string> KeyToPem(const EVP_PKEY& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("cannot write a key");
  }
  return TextOf(*bio);
}

StatusOr<Key> KeyFromPem(std::string_view pem) {
  const Bio bio = Reader(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return OpensslError("not a private key (PEM, without password)");
  return key;
}

StatusOr<std::string> CertificateToPem(X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), &certificate) != 1) {
    return OpensslError("cannot write a certificate");
  }
  return TextOf(*bio);
}

StatusOr<X509Certificate> CertificateFromPem(std::string_view pem) {
  const Bio bio = Reader(pem);
  X509Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) return OpensslError("not a certificate (PEM)");
  return certificate;
}

StatusOr<std::vector<X509Certificate>> CertificatesFromPem(std::string_view pem) {
  const Bio bio = Reader(pem);
  std::vector<X509Certificate> found;
  for (;;) {
    X509Certificate one(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (one == nullptr) break;
    found.push_back(std::move(one));
  }
  if (found.empty()) return OpensslError("no certificate (PEM)");
  ERR_clear_error();  // clears the end-of-file error
  return found;
}

StatusOr<std::string> NewCertificateRequest(EVP_PKEY& key) {
  const X509Request request(X509_REQ_new());
  const Bio bio(BIO_new(BIO_s_mem()));
  if (request == nullptr || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), &key) != 1 ||
      X509_REQ_sign(request.get(), &key, EVP_sha256()) == 0 ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return OpensslError("cannot make a certificate request");
  }
  return TextOf(*bio);
}

std::string Sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned length = 0;
  const auto* const result =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(out.data()), &length);
  if (result == nullptr) std::abort();
  out.resize(length);
  return out;
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  // Without random numbers the program must not continue.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1) {
    std::abort();
  }
  return bytes;
}

}  // namespace rocegw::identity
