// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's objects, and texts of its errors. OpenSSL keeps errors per thread. Objects
// are used by one thread at a time, except EVP_PKEY and X509 that are only read.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/freed_by.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using X509Request = std::unique_ptr<X509_REQ, FreedBy<X509_REQ_free>>;
using Bio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using BigNumber = std::unique_ptr<BIGNUM, FreedBy<BN_free>>;
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>>;

// Returns "cannot sign: ..." with OpenSSL's text, and clears OpenSSL's errors.
Status OpensslError(const std::string& what);

// EC P-256.
StatusOr<Key> NewKey();
// PKCS #8, not encrypted.
StatusOr<std::string> KeyToPem(const EVP_PKEY& key);
StatusOr<Key> KeyFromPem(std::string_view pem);

StatusOr<std::string> CertificateToPem(X509& certificate);
// Parses the first certificate of a text.
StatusOr<X509Certificate> CertificateFromPem(std::string_view pem);
// Parses all certificates, at least one.
StatusOr<std::vector<X509Certificate>> CertificatesFromPem(std::string_view pem);

// Returns a certificate request for a key, without names: the issuer decides on those.
StatusOr<std::string> NewCertificateRequest(EVP_PKEY& key);

std::string Sha256(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view bytes);
std::string Hex(std::string_view bytes);
// Returns `size` unpredictable bytes.
std::string RandomBytes(size_t size);

}  // namespace rocegw::identity
