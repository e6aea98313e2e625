// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/quantity.h"

#include <cctype>
#include <cstdio>
#include <span>

namespace rocegw::cli {
namespace {

// Factor numerator / denominator: bits are eighths of bytes.
struct Suffix {
  std::string_view text;
  uint64_t factor;
  uint64_t divisor = 1;
};

constexpr uint64_t kKi = 1024;
constexpr uint64_t kK = 1000;
constexpr unsigned kBits = 8;

constexpr Suffix kCounts[] = {{"", 1}, {"k", kK}, {"K", kK}, {"M", kK* kK}, {"G", kK* kK* kK}};
constexpr Suffix kByteSuffixes[] = {{"", 1},
                                    {"B", 1},
                                    {"KiB", kKi},
                                    {"MiB", kKi* kKi},
                                    {"GiB", kKi* kKi* kKi},
                                    {"TiB", kKi* kKi* kKi* kKi},
                                    {"PiB", kKi* kKi* kKi* kKi* kKi},
                                    {"Ki", kKi},
                                    {"Mi", kKi* kKi},
                                    {"Gi", kKi* kKi* kKi},
                                    {"Ti", kKi* kKi* kKi* kKi},
                                    {"kB", kK},
                                    {"MB", kK* kK},
                                    {"GB", kK* kK* kK},
                                    {"TB", kK* kK* kK* kK},
                                    {"PB", kK* kK* kK* kK* kK}};
constexpr Suffix kRates[] = {{"", 1},
                             {"bps", 1, kBits},
                             {"kbps", kK, kBits},
                             {"Mbps", kK* kK, kBits},
                             {"Gbps", kK* kK* kK, kBits},
                             {"Tbps", kK* kK* kK* kK, kBits},
                             {"B/s", 1},
                             {"kB/s", kK},
                             {"MB/s", kK* kK},
                             {"GB/s", kK* kK* kK},
                             {"KiB/s", kKi},
                             {"MiB/s", kKi* kKi},
                             {"GiB/s", kKi* kKi* kKi}};

std::span<const Suffix> SuffixesOf(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return kByteSuffixes;
    case Unit::kBytesPerSecond:
      return kRates;
    default:
      return kCounts;
  }
}

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::optional<uint64_t> ParseOctal(std::string_view text) {
  if (text.empty() || text.size() > 5) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

// Decimal fraction: "1.5" is 15 tenths.
struct Decimal {
  unsigned __int128 digits = 0;
  unsigned __int128 scale = 1;
};

std::optional<Decimal> TakeDecimal(std::string_view& text) {
  constexpr int kMostDigits = 19;
  Decimal number;
  int digits = 0;
  bool point = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point && at != 0) {
      point = true;
    } else if (IsDigit(text[at]) && ++digits <= kMostDigits) {
      number.digits = number.digits * 10 + static_cast<unsigned>(text[at] - '0');
      if (point) number.scale *= 10;
    } else {
      break;
    }
  }
  if (digits == 0 || digits > kMostDigits || text[at - 1] == '.') return std::nullopt;
  text.remove_prefix(at);
  return number;
}

std::string WithSuffix(uint64_t value, uint64_t step, std::span<const char* const> suffixes) {
  size_t unit = 0;
  while (unit + 1 < suffixes.size() && value != 0 && value % step == 0) {
    value /= step;
    ++unit;
  }
  return std::to_string(value) + suffixes[unit];
}

}  // namespace

Unit UnitOfField(std::string_view field) {
  if (field == "bytes_per_second") return Unit::kBytesPerSecond;
  if (field == "bytes" || field.ends_with("_bytes")) return Unit::kBytes;
  if (field.ends_with("_per_second")) return Unit::kPerSecond;
  if (field.ends_with("_mode")) return Unit::kMode;
  return Unit::kCount;
}

std::optional<uint64_t> ParseQuantity(std::string_view text, Unit unit) {
  if (unit == Unit::kMode) return ParseOctal(text);
  const auto number = TakeDecimal(text);
  if (!number.has_value()) return std::nullopt;
  if (unit == Unit::kPerSecond && text.ends_with("/s")) text.remove_suffix(2);
  while (text.starts_with(' ')) text.remove_prefix(1);
  for (const Suffix& suffix : SuffixesOf(unit)) {
    if (text != suffix.text) continue;
    // At most 10^19 * 2^50: fits 128 bits.
    const unsigned __int128 all = number->digits * suffix.factor;
    const unsigned __int128 divisor = number->scale * suffix.divisor;
    if (all % divisor != 0 || all / divisor > UINT64_MAX) return std::nullopt;
    return static_cast<uint64_t>(all / divisor);
  }
  return std::nullopt;
}

std::string_view QuantityHelp(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return "bytes, such as 4096, 16MiB or 1GB";
    case Unit::kBytesPerSecond:
      return "a rate, such as 10Gbps (bits) or 500MB/s (bytes); a bare number is bytes per second";
    case Unit::kMode:
      return "a mode in octal digits, such as 0660";
    default:
      return "a whole number, such as 500, 5k or 2M";
  }
}

std::string QuantityText(uint64_t value, Unit unit) {
  static constexpr const char* kBinary[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static constexpr const char* kDecimal[] = {"", "k", "M", "G"};
  static constexpr const char* kBitRates[] = {"bps", "kbps", "Mbps", "Gbps", "Tbps"};
  switch (unit) {
    case Unit::kBytes:
      return WithSuffix(value, kKi, kBinary);
    case Unit::kBytesPerSecond:
      return value > UINT64_MAX / kBits ? std::to_string(value)
                                        : WithSuffix(value * kBits, kK, kBitRates);
    case Unit::kPerSecond:
      return WithSuffix(value, kK, kDecimal) + "/s";
    case Unit::kMode: {
      char text[32];
      std::snprintf(text, sizeof text, "%04llo", static_cast<unsigned long long>(value));
      return text;
    }
    default:
      return WithSuffix(value, kK, kDecimal);
  }
}

std::optional<int64_t> ParseDuration(std::string_view text) {
  constexpr int64_t kSecond = 1000;
  constexpr struct {
    std::string_view text;
    int64_t milliseconds;
  } kUnits[] = {{"ms", 1},
                {"s", kSecond},
                {"m", 60 * kSecond},
                {"h", 3600 * kSecond},
                {"d", 86400 * kSecond}};
  constexpr int64_t kMost = 10LL * 365 * 86400 * kSecond;
  if (text.empty()) return std::nullopt;
  int64_t total = 0;
  bool bare = false;
  while (!text.empty()) {
    if (bare) return std::nullopt;
    int64_t number = 0;
    size_t digits = 0;
    while (digits < text.size() && IsDigit(text[digits]) && digits < 12) {
      number = number * 10 + (text[digits++] - '0');
    }
    size_t end = digits;
    while (end < text.size() && !IsDigit(text[end])) ++end;
    if (digits == 0) return std::nullopt;
    const std::string_view unit = text.substr(digits, end - digits);
    int64_t factor = unit.empty() ? kSecond : 0;
    bare = unit.empty();
    for (const auto& known : kUnits) {
      if (unit == known.text) factor = known.milliseconds;
    }
    if (factor == 0 || number > kMost / factor) return std::nullopt;
    total += number * factor;
    if (total > kMost) return std::nullopt;
    text.remove_prefix(end);
  }
  return total;
}

CallResult ReadAmount(const std::string& option, const std::string& text, Unit unit, uint64_t most,
                      uint64_t& out) {
  if (text.empty()) return {};
  const auto amount = ParseQuantity(text, unit);
  if (!amount.has_value() || *amount == 0 || *amount > most) {
    return {kUsage,
            option + ": '" + text + "' must be " + std::string(QuantityHelp(unit)) +
                ", more than 0 and at most " + QuantityText(most, unit),
            {}};
  }
  out = *amount;
  return {};
}

std::string ReadSeconds(const std::string& option, const std::string& text, uint32_t& seconds) {
  const auto time = ParseDuration(text);
  if (!time.has_value()) return option + ": '" + text + "' is not a duration (90s, 15m, 1h30m)";
  seconds = static_cast<uint32_t>(*time / 1000);
  return {};
}

}  // namespace rocegw::cli
