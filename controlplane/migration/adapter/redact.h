// SPDX-License-Identifier: Apache-2.0
// Secrets in the text of a tool: replaced before the text is logged, stored or sent. An adapter
// that passes on what a tool printed may pass on a key of Ceph's keyring or a password of a URL.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rocegw::migration {

// Returns the text with "[redacted]" for what looks like a secret: values after words such as
// password, secret, token and key; keys of Ceph (AQ...==), NVMe (DHHC-1:, NVMeTLSkey-1:); passwords
// in URLs; PEM blocks of private keys.
std::string Redacted(std::string_view text);

}  // namespace rocegw::migration
