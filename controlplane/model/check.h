// SPDX-License-Identifier: Apache-2.0
// Checker of foreign messages, shared with gateways (proto/rules/check.h), under this module's
// name.
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
