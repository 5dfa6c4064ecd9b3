#pragma once

/// Marks the classes and functions of the public API that are defined in the library. Everything else is hidden: a
/// shared libzkasio exports nothing of detail/, except detail/handles/testing_seam.hpp.
#define ZKASIO_EXPORT [[gnu::visibility("default")]]
