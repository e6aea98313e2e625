// SPDX-License-Identifier: Apache-2.0
// Failure: why a case failed, thrown from wherever it is seen and caught where cases are run.
// rdma_check is a test program of its own process, so exceptions are the plain way out of nested
// steps.
#pragma once

#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

namespace rocegw::interop {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The other side reported its failure first; ours would only be a consequence.
class PeerFailure : public Failure {
 public:
  using Failure::Failure;
};

template <typename... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Failure(text.str());
}

template <typename... Parts>
void Check(bool condition, const Parts&... parts) {
  if (!condition) Fail(parts...);
}

// For calls that return -1 (librdmacm) or nullptr and set errno.
template <typename... Parts>
void CheckErrno(bool condition, const Parts&... parts) {
  if (!condition) Fail(parts..., ": ", std::strerror(errno));
}

// For calls that return an errno value (most of libibverbs).
template <typename... Parts>
void CheckCode(int code, const Parts&... parts) {
  if (code != 0) Fail(parts..., ": ", std::strerror(code));
}

}  // namespace rocegw::interop
