// Writes of an admin, as every page shows them.
import { entry, notified } from '../example.ts'
import { confirm, fill, PICTURE, startFresh } from '../fresh.ts'

const { play, robotics, send, signIn, sql, walk } = await startFresh()

walk('Each write of an admin is shown at once', {}, async (t, page) => {
  await signIn(page, 'admin')
  await send('POST', '/auth/register', '', {
    email: 'fresh@example.org', password: 'correct horse', firstName: 'Fresh', lastName: 'Person',
  })
  await send('POST', '/auth/register', '', {
    email: 'leaving@example.org', password: 'correct horse', firstName: 'Leaving', lastName: 'Author',
  })
  await sql`
    WITH author AS (
      UPDATE users SET club_id = ${robotics.slice('/clubs/'.length)} WHERE email = 'leaving@example.org' RETURNING id
    )
    INSERT INTO blogs (title, content, image_url, status, author_id)
    SELECT 'A last post', 'Goodbye.', 'data:image/png,', 'PUBLISHED', id FROM author
  `
  await play(t, page, [
    {
      name: 'a new post',
      at: '/admin/blogs',
      act: fill('New post', { Title: 'News', Text: 'The office is closed.', Status: 'PUBLISHED' }, 'has been saved.'),
      shown: { '/admin/blogs': /News/, '/blogs': /News/, '/': /News/ },
    },
    {
      name: 'another title of a post',
      at: '/admin/blogs',
      act: fill('Edit', { Title: 'Late news' }, 'has been saved.', 'News'),
      shown: { '/admin/blogs': /Late news/, '/blogs': /Late news/, '/': /Late news/ },
    },
    {
      name: 'a post is archived',
      at: '/admin/blogs',
      act: async page => {
        await entry(page, 'Late news').getByRole('button', { name: 'Archive' }).click()
        await notified(page, 'has been archived.')
      },
      shown: { '/admin/blogs': /Late newsArchived/, '/blogs': [/Late news/], '/': [/Late news/] },
    },
    {
      name: 'a post is published',
      at: '/admin/blogs',
      act: async page => {
        await entry(page, 'Late news').getByRole('button', { name: 'Approve' }).click()
        await notified(page, 'has been published.')
      },
      shown: { '/admin/blogs': /Late newsPublished/, '/blogs': /Late news/, '/': /Late news/ },
    },
    {
      name: 'a post is deleted',
      at: '/admin/blogs',
      act: confirm('Late news', 'Delete', 'has been deleted.'),
      shown: { '/admin/blogs': [/Late news/], '/blogs': [/Late news/], '/': [/Late news/] },
    },
    {
      name: 'a person gets a club and a name',
      at: '/admin/users',
      act: fill('Edit', { 'First name': 'Fresher', 'Member of': 'Robotics Workshop' }, 'Fresher', 'Fresh Person'),
      shown: { '/admin/users': /Fresher Person/, [robotics]: /6 members/ },
    },
    {
      name: 'a person gets a role',
      at: '/admin/users',
      act: fill('Role', { Role: 'CLUB_HEAD' }, 'The role of', 'Fresher Person'),
      shown: { '/admin/users': /Fresher PersonClub head/, [robotics]: /Fresher PersonOrganizer/ },
    },
    {
      name: 'a person with a post is erased',
      at: '/admin/users',
      act: confirm('Leaving Author', 'Delete', 'has been deleted.'),
      shown: {
        '/admin/users': [/Leaving Author/],
        '/admin/blogs': [/Leaving Author/],
        '/blogs': [/Leaving Author/],
        '/': [/Leaving Author/],
      },
    },
    {
      name: 'a club',
      at: '/admin/clubs',
      act: fill('New club', {
        Name: 'Chess Circle', Description: 'Slow games.', 'Email address of the club head': 'fresh@example.org',
      }, 'has been created.'),
      shown: { '/admin/clubs': /Chess Circleled by Fresher/, '/clubs': /Chess Circle/, '/events': /Chess Circle/ },
    },
    {
      name: 'a mentor',
      at: '/admin/mentors',
      act: fill('New mentor', { Name: 'Vera', Expertise: 'Endgames', Club: 'Robotics Workshop', ...PICTURE }, 'Vera'),
      shown: { '/admin/mentors': /Vera/, '/mentors': /Vera/, [robotics]: /Vera/ },
    },
    {
      name: 'another expertise of a mentor',
      at: '/admin/mentors',
      act: fill('Edit', { Expertise: 'Openings' }, 'has been saved.', 'Vera'),
      shown: { '/admin/mentors': /Openings/, '/mentors': /Openings/, [robotics]: /Openings/ },
    },
    {
      name: 'a mentor is deleted',
      at: '/admin/mentors',
      act: confirm('Vera', 'Delete', 'has been deleted.'),
      shown: { '/admin/mentors': [/Vera/], '/mentors': [/Vera/], [robotics]: [/Vera/] },
    },
    {
      name: 'a testimonial',
      at: '/admin/testimonials',
      act: fill('New testimonial', { Name: 'Lyudmila', 'Class of': '2099', Text: 'I learned it late.' }, 'Lyudmila'),
      shown: { '/admin/testimonials': /Lyudmila/, '/testimonials': /Lyudmila/, '/': /Lyudmila/ },
    },
    {
      name: 'another text of a testimonial',
      at: '/admin/testimonials',
      act: fill('Edit', { Text: 'I learned it early.' }, 'has been saved.', 'Lyudmila'),
      shown: { '/admin/testimonials': /it early/, '/testimonials': /it early/, '/': /it early/ },
    },
    {
      name: 'a testimonial is deleted',
      at: '/admin/testimonials',
      act: confirm('Lyudmila', 'Delete', 'has been deleted.'),
      shown: { '/admin/testimonials': [/Lyudmila/], '/testimonials': [/Lyudmila/], '/': [/Lyudmila/] },
    },
  ])
})
