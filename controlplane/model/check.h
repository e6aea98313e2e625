// SPDX-License-Identifier: Apache-2.0
// The checker of messages from outside, which gateways use as well (proto/rules/check.h), under
// this module's name.
#pragma once

#include "proto/rules/check.h"

namespace rocegw::model {

using rules::Check;
using rules::CheckImmutable;
using rules::ClearOutputOnly;
using rules::GuardedChange;
using rules::GuardedChanges;
using rules::Violation;

}  // namespace rocegw::model
