// SPDX-License-Identifier: Apache-2.0
// Text formats of the API (proto/rules/formats.h), under this module's name.
#pragma once

#include "proto/rules/formats.h"

namespace rocegw::model {

using rules::IsLabelKey;
using rules::IsLabelValue;
using rules::MismatchWithFormat;

}  // namespace rocegw::model
