// SPDX-License-Identifier: Apache-2.0
// What the adapter says of itself. The surface is the same on a GPU and on the host executor; name and device differ.
#pragma once

#include <string>

namespace qkcts::cuda {

std::string description(bool host);

}  // namespace qkcts::cuda
