// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/http_response.h"

#include <cerrno>
#include <charconv>
#include <optional>

#include "gateway/base/lower_case.h"

namespace rocegw::kubeapi {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

Status Bad(const std::string& what) { return {EBADMSG, "the server's answer " + what}; }

// Removes and returns a line; nullopt: its end is missing.
std::optional<std::string_view> TakeLine(std::string_view& bytes) {
  const size_t end = bytes.find(kLineEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + kLineEnd.size());
  return line;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses the whole text as a number.
std::optional<size_t> NumberOf(std::string_view text, int base) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

StatusOr<std::string> Unchunked(std::string_view bytes) {
  std::string body;
  for (;;) {
    const auto line = TakeLine(bytes);
    if (!line) return Bad("ends within its chunks");
    const auto size = NumberOf(Trimmed(line->substr(0, line->find(';'))), 16);
    if (!size) return Bad("has a chunk without a size");
    if (*size == 0) return body;
    if (bytes.size() < kLineEnd.size() || *size > bytes.size() - kLineEnd.size())
      return Bad("ends within a chunk");
    body.append(bytes.substr(0, *size));
    bytes.remove_prefix(*size);
    if (!bytes.starts_with(kLineEnd)) return Bad("has a chunk of another size than it says");
    bytes.remove_prefix(kLineEnd.size());
  }
}

}  // namespace

StatusOr<HttpResponse> ParseHttpResponse(std::string_view bytes) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr size_t kCodeAt = 9;  // "HTTP/1.1 200 OK"
  constexpr size_t kCodeDigits = 3;
  const auto first = TakeLine(bytes);
  if (!first || !first->starts_with(kVersion) || first->size() < kCodeAt + kCodeDigits)
    return Bad("is no HTTP/1.1 response");
  const auto code = NumberOf(first->substr(kCodeAt, kCodeDigits), 10);
  if (!code || *code < 200 || *code > 599) return Bad("has no final status");
  HttpResponse response{static_cast<int>(*code), {}};
  std::optional<size_t> length;
  bool chunked = false;
  for (;;) {
    const auto line = TakeLine(bytes);
    if (!line) return Bad("ends within its header");
    if (line->empty()) break;
    const size_t colon = line->find(':');
    if (colon == std::string_view::npos) return Bad("has a header line without a name");
    const std::string name = LowerCase(line->substr(0, colon));
    const std::string_view value = Trimmed(line->substr(colon + 1));
    if (name == "transfer-encoding") {
      chunked = LowerCase(value) == "chunked";
      if (!chunked) return Bad("has the transfer encoding " + std::string(value));
    } else if (name == "content-length") {
      length = NumberOf(value, 10);
      if (!length) return Bad("has a length that is no number");
    }
  }
  if (chunked) {
    auto body = Unchunked(bytes);
    if (!body.ok()) return body.status();
    response.body = std::move(*body);
    return response;
  }
  // Without a length, a cut connection could not be distinguished from the end.
  if (!length && *code != 204) return Bad("says no length");
  if (length && bytes.size() < *length) return Bad("ends before its body does");
  response.body = bytes.substr(0, length.value_or(0));
  return response;
}

}  // namespace rocegw::kubeapi
