// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate.h"

#include <arpa/inet.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>

#include <cerrno>
#include <charconv>
#include <ctime>

namespace rocegw::identity {
namespace {

constexpr size_t kTimeDigits = 16;
constexpr size_t kSerialDigits = 38;
constexpr size_t kRandomBytes = (kSerialDigits - kTimeDigits) / 2;

std::string TextOf(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<size_t>(ASN1_STRING_length(&text))};
}

std::string AddressText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  if (bytes.size() == 16) inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

TimePoint TimeOf(const ASN1_TIME& time) {
  std::tm calendar{};
  if (ASN1_TIME_to_tm(&time, &calendar) != 1) return {};
  return TimePoint(std::chrono::seconds(timegm(&calendar)));
}

std::string SerialOf(const X509& certificate) {
  const BigNumber number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr));
  std::string bytes(kSerialDigits / 2, '\0');
  // A longer or negative serial number is not ours, so our rules do not apply.
  const bool fits = number != nullptr && BN_is_negative(number.get()) == 0 &&
                    BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                 static_cast<int>(bytes.size())) >= 0;
  return fits ? Hex(bytes) : std::string();
}

std::string TimeDigits(TimePoint time) {
  const auto count = static_cast<uint64_t>(time.time_since_epoch().count());
  char text[kTimeDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(count));
  return text;
}

Status CheckKind(EVP_PKEY& key) {
  constexpr const char* kAllowed = "; EC P-256 or P-384, or RSA of 2048 to 4096 bits are";
  const int bits = EVP_PKEY_get_bits(&key);
  if (EVP_PKEY_is_a(&key, "RSA") != 0) {
    if (bits >= 2048 && bits <= 4096) return OkStatus();
    return {EINVAL, "an RSA key of " + std::to_string(bits) + " bits is not accepted" + kAllowed};
  }
  char group[32] = "";
  if (EVP_PKEY_is_a(&key, "EC") != 0 &&
      EVP_PKEY_get_utf8_string_param(&key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                     nullptr) == 1) {
    const std::string_view name = group;
    if (name == "prime256v1" || name == "secp384r1") return OkStatus();
  }
  return {EINVAL, std::string("this kind of key is not accepted") + kAllowed};
}

}  // namespace

TimePoint Now() { return std::chrono::time_point_cast<std::chrono::microseconds>(Clock::now()); }

CertificateFacts FactsOf(X509& certificate) {
  CertificateFacts facts;
  facts.serial = SerialOf(certificate);
  facts.not_before = TimeOf(*X509_get0_notBefore(&certificate));
  facts.not_after = TimeOf(*X509_get0_notAfter(&certificate));
  // Older versions backdated by minutes.
  facts.issued = facts.not_after - facts.not_before > kBackdated ? facts.not_before + kBackdated
                                                                 : facts.not_before;
  const AlternativeNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  int uris = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(names.get(), i);
    if (name.type == GEN_URI && ++uris == 1) facts.uri = TextOf(*name.d.uniformResourceIdentifier);
    if (name.type == GEN_DNS) facts.names.push_back(TextOf(*name.d.dNSName));
    if (name.type == GEN_IPADD) facts.names.push_back(AddressText(TextOf(*name.d.iPAddress)));
  }
  if (uris > 1) facts.uri.clear();
  unsigned char* der = nullptr;
  const int size = i2d_X509(&certificate, &der);
  if (size > 0) {
    facts.fingerprint = Sha256({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  }
  OPENSSL_free(der);
  return facts;
}

StatusOr<CertificateFacts> FactsOfPem(std::string_view pem) {
  auto certificate = CertificateFromPem(pem);
  if (!certificate.ok()) return certificate.status();
  return FactsOf(**certificate);
}

bool IsDueForRenewal(const CertificateFacts& facts, TimePoint now) {
  return now >= MiddleOfLife(facts) || facts.issued > now + kClockTolerance;
}

TimePoint MiddleOfLife(const CertificateFacts& facts) {
  return facts.issued + (facts.not_after - facts.issued) / 2;
}

std::string NewSerial(TimePoint issued) {
  return TimeDigits(issued) + Hex(RandomBytes(kRandomBytes));
}

std::string LeastSerial(TimePoint issued) {
  return TimeDigits(issued) + std::string(kSerialDigits - kTimeDigits, '0');
}

TimePoint TimeOfSerial(std::string_view serial) {
  uint64_t count = 0;
  if (serial.size() >= kTimeDigits) {
    std::from_chars(serial.data(), serial.data() + kTimeDigits, count, 16);
  }
  return TimePoint(std::chrono::microseconds(static_cast<int64_t>(count)));
}

StatusOr<Key> PublicKeyOfRequest(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const X509Request request(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  if (request == nullptr) {
    return OpensslError("is not a certificate request (PKCS #10 as PEM)");
  }
  Key key(X509_REQ_get_pubkey(request.get()));
  if (key == nullptr) return OpensslError("holds no public key that is understood");
  if (Status status = CheckKind(*key); !status.ok()) return status;
  if (X509_REQ_verify(request.get(), key.get()) != 1) {
    return OpensslError("is not signed by the key that it holds");
  }
  return key;
}

std::string DigestOfKey(EVP_PKEY& key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(&key, &der);
  if (size <= 0) return {};
  std::string digest = Sha256({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

}  // namespace rocegw::identity
