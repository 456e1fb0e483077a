// The OWASP rules for openapi.json, except the rules that do not fit this API.
import owasp from '@stoplight/spectral-owasp-ruleset'

const PATHS = 'openapi.json#/paths'

export default {
  extends: owasp,
  rules: {
    // The contract limits no text, list or count. The whole request is limited (MAX_BODY_BYTES); the
    // only integer in a request, batchYear, has its own limits.
    'owasp:api4:2023-string-limit': 'off',
    'owasp:api4:2023-string-restricted': 'off',
    'owasp:api4:2023-array-limit': 'off',
    'owasp:api4:2023-integer-limit': 'off',
    // Sign-in, registration and submissions have documented limits. All others return 503 with Retry-After. There are
    // no quotas, and so no headers about them.
    'owasp:api4:2023-rate-limit': 'off',
    'owasp:api4:2023-rate-limit-responses-429': 'off',
    // The header is in every response to a browser app of FRONTEND_URL; other callers do not need CORS.
    'owasp:api8:2023-define-cors-origin': 'off',
    // Permissions of admins follow from the role in the token, and each operation names its roles.
    'owasp:api5:2023-admin-security-unique': 'off',
    // The contract makes operations public. test/routes/access.test.ts shows who may use each operation, and its 401.
    'owasp:api2:2023-read-restricted': 'off',
    'owasp:api2:2023-write-restricted': 'off',
    'owasp:api8:2023-define-error-responses-401': 'off',
  },
  overrides: [
    {
      // These have no declared 500: they need no input, return 503 or an empty list instead, or always reject.
      files: [
        `${PATHS}/~1livez/get`,
        `${PATHS}/~1mentors/get`,
        `${PATHS}/~1readyz/get`,
        `${PATHS}/~1users~1%7BuserId%7D~1club/delete`,
      ],
      rules: { 'owasp:api8:2023-define-error-responses-500': 'off' },
    },
    {
      // The service does not request these URLs: a browser is redirected to them after a sign-in.
      files: [`${PATHS}/~1auth~1google~1start/get`],
      rules: { 'owasp:api7:2023-concerning-url-parameter': 'off' },
    },
    {
      // Calendar and mail programs send no header with a token.
      files: [
        `${PATHS}/~1account~1unsubscribe~1%7Btoken%7D/post`,
        `${PATHS}/~1feeds~1me~1%7Btoken%7D.ics/get`,
      ],
      rules: { 'owasp:api2:2023-no-credentials-in-url': 'off' },
    },
  ],
}
