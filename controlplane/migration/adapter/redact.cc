// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rocegw::migration {
namespace {

constexpr std::string_view kReplacement = "[redacted]";
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPemEnd = "-----END ";
constexpr size_t kCephKey = 40;
// A value after "key" that is shorter is a name rather than a secret.
constexpr size_t kShortestKey = 16;

// Words whose value is a secret, whatever it is.
constexpr auto kNames = std::to_array<std::string_view>(
    {"password", "passwd", "passphrase", "secret", "token", "psk", "credential", "credentials"});
constexpr auto kSchemes = std::to_array<std::string_view>({"bearer", "basic"});
constexpr auto kKeyPrefixes = std::to_array<std::string_view>({"DHHC-1:", "NVMeTLSkey-1:"});

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool IsNameByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

bool IsValueByte(char byte) {
  constexpr std::string_view kEnds = " \t\r\n\"'`,;)}]";
  return kEnds.find(byte) == std::string_view::npos;
}

bool IsBase64(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '/' || c == '=';
  });
}

enum class Follows : uint8_t { kNothing, kSecret, kKey, kScheme };

// Classifies the value after a word: "client_secret" and "dhchap-secret" end with a name.
Follows AfterWord(std::string_view word) {
  const std::string lower = Lower(word);
  if (std::ranges::find(kSchemes, lower) != kSchemes.end()) return Follows::kScheme;
  if (std::ranges::any_of(kNames, [&](std::string_view name) { return lower.ends_with(name); }))
    return Follows::kSecret;
  return lower.ends_with("key") ? Follows::kKey : Follows::kNothing;
}

class Redactor {
 public:
  explicit Redactor(std::string_view text) : text_(text) {}

  std::string Run() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with(kPemBegin)) {
        TakePem();
      } else if (text_.substr(at_).starts_with("://")) {
        TakeAuthority();
      } else if (IsNameByte(text_[at_])) {
        TakeWord();
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view Value() const {
    size_t end = at_;
    while (end < text_.size() && IsValueByte(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  void Replace(size_t size) {
    out_ += kReplacement;
    at_ += size;
  }

  void TakePem() {
    const size_t line = std::min(text_.find("KEY-----", at_), text_.size());
    const size_t end = text_.find(kPemEnd, at_);
    if (line == text_.size() || (end != std::string_view::npos && end < line)) {
      out_ += text_.substr(at_, kPemBegin.size());
      at_ += kPemBegin.size();
      return;
    }
    // A block whose end was cut off is a secret to the text's end.
    const size_t close =
        end == std::string_view::npos ? end : text_.find("-----", end + kPemEnd.size());
    Replace(close == std::string_view::npos ? text_.size() - at_ : close + 5 - at_);
  }

  // "://user:password@host"
  void TakeAuthority() {
    out_ += "://";
    at_ += 3;
    const std::string_view value = Value();
    const std::string_view authority = value.substr(0, value.find('/'));
    const size_t sign = authority.rfind('@');
    const size_t colon = authority.find(':');
    if (sign == std::string_view::npos || colon == std::string_view::npos || colon > sign) return;
    out_ += authority.substr(0, colon + 1);
    at_ += colon + 1;
    Replace(sign - colon - 1);
  }

  void TakeWord() {
    const std::string_view value = Value();
    const bool of_ceph = value.size() == kCephKey && value.starts_with("AQ") &&
                         value.ends_with("==") && IsBase64(value);
    const bool of_nvme = std::ranges::any_of(
        kKeyPrefixes, [&](std::string_view prefix) { return value.starts_with(prefix); });
    if (of_ceph || of_nvme) return Replace(value.size());
    size_t end = at_;
    while (end < text_.size() && IsNameByte(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    out_ += word;
    at_ = end;
    TakeValue(AfterWord(word));
  }

  void TakeValue(Follows follows) {
    if (follows == Follows::kNothing) return;
    const size_t before = at_;
    bool separated = false;
    while (at_ < text_.size()) {
      const char byte = text_[at_];
      if (byte == '=' || byte == ':') separated = true;
      if (byte != '=' && byte != ':' && byte != ' ' && byte != '\t' && byte != '"' && byte != '\'')
        break;
      ++at_;
    }
    if (separated || follows == Follows::kScheme) {
      out_ += text_.substr(before, at_ - before);
      const std::string_view value = Value();
      const bool scheme = AfterWord(value) == Follows::kScheme;
      const bool name =
          follows == Follows::kKey && (value.size() < kShortestKey || value[0] == '/');
      if (!value.empty() && !scheme && !name && at_ != before) Replace(value.size());
      return;
    }
    at_ = before;
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string Redacted(std::string_view text) { return Redactor(text).Run(); }

}  // namespace rocegw::migration
