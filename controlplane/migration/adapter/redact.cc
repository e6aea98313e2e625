// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "gateway/base/lower_case.h"

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

// Returns true if a value after the separator is in a string. The separator's first quote ends the
// string of the word, and an empty value has both of its quotes in the separator.
bool OpensString(std::string_view separator) {
  const auto is_quote = [](char byte) { return byte == '"' || byte == '\''; };
  if (!is_quote(separator.back())) return false;
  if (is_quote(separator.front())) separator.remove_prefix(1);
  return std::ranges::count_if(separator, is_quote) % 2 == 1;
}

enum class Follows : uint8_t { kNothing, kSecret, kKey, kScheme };

// Classifies the value after a word: "client_secret" and "dhchap-secret" end with a name.
Follows AfterWord(std::string_view word) {
  const std::string lower = LowerCase(word);
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
    TakeValue(AfterWord(word), word.starts_with("--"));
  }

  // Returns the size of what separates a word from its value; 0: nothing does. The value of an
  // option, such as --password, stands also behind a blank or in the next string of a list.
  size_t Separator(Follows follows, bool is_option) const {
    const std::string_view bytes = is_option ? "=: \t\"'," : "=: \t\"'";
    const size_t end = std::min(text_.find_first_not_of(bytes, at_), text_.size());
    const std::string_view between = text_.substr(at_, end - at_);
    const bool separates = follows == Follows::kScheme || is_option ||
                           between.find_first_of("=:") != std::string_view::npos;
    return separates ? between.size() : 0;
  }

  // Returns the size of a string without its quotes, which may have lost its end.
  size_t StringSize(char quote) const {
    size_t end = at_;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    return std::min(end, text_.size()) - at_;
  }

  void TakeValue(Follows follows, bool is_option) {
    if (follows == Follows::kNothing) return;
    const size_t separator = Separator(follows, is_option);
    if (separator == 0) return;
    const std::string_view between = text_.substr(at_, separator);
    out_ += between;
    at_ += separator;
    const std::string_view value = Value();
    // "--token --verbose": the value of one option is not the next one.
    const bool scheme =
        AfterWord(value) == Follows::kScheme || (is_option && value.starts_with("--"));
    const bool name = follows == Follows::kKey && (value.size() < kShortestKey || value[0] == '/');
    if (scheme || name) return;
    const size_t size = OpensString(between) ? StringSize(between.back()) : value.size();
    if (size != 0) Replace(size);
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string Redacted(std::string_view text) { return Redactor(text).Run(); }

}  // namespace rocegw::migration
